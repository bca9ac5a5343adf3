/* A page of a run that goes on, served to this machine alone: a thread with a small HTTP server on 127.0.0.1.
 *
 * It has one page and one document of data, and knows nothing of what is in them. A request is answered and its connection closed; whatever
 * else than GET and HEAD is asked for, or comes by another name of this machine than its own (a page elsewhere whose name was made to point
 * here), is refused. Clients that are slow or send nothing are cut off, the oldest first, and none of them can hold the thread, which runs at a
 * low priority. */
#ifndef HONE_LIVE_LIVE_H
#define HONE_LIVE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { LIVE_REQUEST_MOST = 16384, LIVE_CLIENTS = 32 };

/* The newest data as text that free() takes; NULL: none is newer than `seen`, or there is no memory. Called by the server's thread. */
typedef char *live_data_fn(void *context, uint64_t seen);

/* Port 0: any that is free. The page is copied. */
struct live;
enum status live_open(struct live **out, int port, const char *page, size_t size, live_data_fn *data, void *context, struct error *err);
int live_port(const struct live *l);
/* A moment longer where somebody is looking, so that they see the end; NULL is fine. */
void live_close(struct live *l);

/* ---- what is asked for ---- */

struct live_request {
    int status;                         /* it is answered with; 0: it is not whole yet */
    bool head;                          /* without a body */
    bool data;                          /* the data, else the page */
    uint64_t seen;                      /* the version of the data that the client has */
};
struct live_request live_request_parse(const char *text, size_t size, int port);

#endif
