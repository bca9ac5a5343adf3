/* Inside of the room: the server and its connections. */
#ifndef HONE_LIVE_LIVE_INT_H
#define HONE_LIVE_LIVE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "live/live.h"

struct client {
    int fd;                             /* -1: there is none */
    enum { CLIENT_READS, CLIENT_WRITES, CLIENT_LEAVES } state;
    double deadline;                    /* it is cut off then */
    char *in;                           /* (LIVE_REQUEST_MOST): what it has sent */
    size_t in_size;
    char head[640], words[64];          /* of the answer */
    const char *body;
    char *own;                          /* a body that is this client's alone */
    size_t head_size, body_size, sent;
};

struct live {
    int port, listener, wake;           /* wake: an eventfd that ends the thread */
    char *page;
    size_t page_size;
    live_data_fn *data;
    void *context;
    pthread_t thread;
    struct client client[LIVE_CLIENTS];
    _Atomic int64_t asked_ns;           /* when data were last asked for and given; 0: never */
};

void client_open(struct client *c, int fd);
void client_close(struct client *c);
void client_serve(struct client *c, struct live *l);      /* it is ready for what its state says */

#endif
