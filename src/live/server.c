/* The server's thread: one loop over all connections; see live.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "live/live_int.h"

enum { STACK_BYTES = 256 << 10, BACKLOG = 16, WAIT_MS = 500, NICE = 10, FIRST = 2 };      /* FIRST: of the clients, in the list for poll */

/* ---- clients ---- */

/* A free place, or that of the client which would be cut off first. */
static struct client *find_place(struct live *l)
{
    struct client *oldest = &l->client[0];
    for (int i = 0; i < LIVE_CLIENTS; i++) {
        if (l->client[i].fd < 0)
            return &l->client[i];
        if (l->client[i].deadline < oldest->deadline)
            oldest = &l->client[i];
    }
    client_close(oldest);
    return oldest;
}

/* Most have sent their request already when they are let in. */
static bool accept_one(struct live *l)
{
    const int fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            poll(NULL, 0, WAIT_MS);             /* it would be asked again at once */
        return false;
    }
    struct client *c = find_place(l);
    client_open(c, fd);
    client_serve(c, l);
    return true;
}

static void cut_off(struct live *l)
{
    const double now = clock_s();
    for (int i = 0; i < LIVE_CLIENTS; i++)
        if (l->client[i].fd >= 0 && l->client[i].deadline < now)
            client_close(&l->client[i]);
}

/* ---- the loop ---- */

static void list_all(struct live *l, struct pollfd list[FIRST + LIVE_CLIENTS])
{
    list[0] = (struct pollfd){.fd = l->wake, .events = POLLIN};
    list[1] = (struct pollfd){.fd = l->listener, .events = POLLIN};
    for (int i = 0; i < LIVE_CLIENTS; i++)
        list[FIRST + i] = (struct pollfd){.fd = l->client[i].fd, .events = l->client[i].state == CLIENT_WRITES ? POLLOUT : POLLIN};
}

static void *run(void *context)
{
    struct live *l = context;
    struct pollfd list[FIRST + LIVE_CLIENTS];
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);         /* of this thread alone, on Linux */
    for (;;) {
        list_all(l, list);
        const int ready = poll(list, FIRST + LIVE_CLIENTS, WAIT_MS);
        if (ready > 0 && list[0].revents)
            return NULL;
        for (int i = 0; ready > 0 && i < LIVE_CLIENTS; i++)
            if (list[FIRST + i].revents && l->client[i].fd >= 0)
                client_serve(&l->client[i], l);
        for (int i = 0; ready > 0 && list[1].revents && i < LIVE_CLIENTS && accept_one(l); i++)
            ;
        cut_off(l);
    }
}

/* ---- open and close ---- */

static enum status listen_on(struct live *l, int port, struct error *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    const int yes = 1;
    l->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->listener < 0 || l->wake < 0)
        return error_errno(err, "--live: cannot make a socket");
    setsockopt(l->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);       /* a run before this one may just have left the port */
    if (bind(l->listener, (struct sockaddr *)&at, size) && errno == EADDRINUSE)
        return error_set(err, BAD_INPUT, "--live: port %d of 127.0.0.1 is taken; give another, or --live alone for one that is free", port);
    if (getsockname(l->listener, (struct sockaddr *)&at, &size) || !at.sin_port || listen(l->listener, BACKLOG))
        return error_errno(err, "--live: cannot listen on port %d of 127.0.0.1", port);
    l->port = ntohs(at.sin_port);
    return OK;
}

/* Signals are for the thread that trains. */
static enum status start(struct live *l, struct error *err)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    const int code = pthread_create(&l->thread, &attributes, run, l);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return code ? error_errno(err, "--live: cannot start a thread") : OK;
}

static void release(struct live *l)
{
    for (int i = 0; i < LIVE_CLIENTS; i++)
        client_close(&l->client[i]);
    if (l->listener >= 0)
        close(l->listener);
    if (l->wake >= 0)
        close(l->wake);
    free(l->page);
    free(l);
}

enum status live_open(struct live **out, int port, const char *page, size_t size, live_data_fn *data, void *context, struct error *err)
{
    struct live *l = calloc(1, sizeof *l);
    if (!l)
        return error_no_memory(err, "the live page", sizeof *l);
    l->listener = l->wake = -1;
    l->data = data;
    l->context = context;
    l->page_size = size;
    for (int i = 0; i < LIVE_CLIENTS; i++)
        l->client[i].fd = -1;
    l->page = malloc(size + 1);
    enum status st = l->page ? listen_on(l, port, err) : error_no_memory(err, "the live page", size);
    if (st == OK) {
        memcpy(l->page, page, size);
        st = start(l, err);
    }
    if (st == OK)
        *out = l;
    else
        release(l);
    return st;
}

int live_port(const struct live *l) { return l->port; }

/* Somebody who has just asked asks again soon. */
static void wait_for_last_look(struct live *l)
{
    enum { RECENT_MS = 3000, MOST_MS = 1500, PAUSE_MS = 20 };
    const int64_t asked = atomic_load(&l->asked_ns), now = clock_ns();
    if (!asked || now - asked > RECENT_MS * 1000000LL)
        return;
    for (int waited = 0; waited < MOST_MS && atomic_load(&l->asked_ns) < now; waited += PAUSE_MS)
        poll(NULL, 0, PAUSE_MS);
    poll(NULL, 0, 5 * PAUSE_MS);        /* until it has read it */
}

void live_close(struct live *l)
{
    const uint64_t one = 1;
    if (!l)
        return;
    wait_for_last_look(l);
    while (write(l->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(l->thread, NULL);
    release(l);
}
