/* One connection: a request is read, its answer written, then it is closed. Nothing here waits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "live/live_int.h"

static const double READ_S = 5, WRITE_S = 15, LINGER_S = 1;

void client_open(struct client *c, int fd)
{
    *c = (struct client){.fd = fd, .state = CLIENT_READS, .deadline = clock_s() + READ_S};
}

void client_close(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    free(c->own);
    *c = (struct client){.fd = -1};
}

/* ---- the answer ---- */

static const char *reason_of(int status)
{
    static const struct { int status; const char *words; } reasons[] = {
        {200, "OK"}, {204, "No Content"}, {400, "Bad Request"}, {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
        {431, "Request Header Fields Too Large"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].words;
    return "Service Unavailable";
}

/* What a browser must not do with it, for either kind of body. */
static const char FIELDS[] = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n"
                             "Content-Security-Policy: frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n";

static void answer(struct client *c, int status, bool head, const char *type, const char *body, size_t size)
{
    const int n = snprintf(c->head, sizeof c->head, "HTTP/1.1 %d %s\r\n%s%s%s%sContent-Length: %zu\r\n%s", status, reason_of(status),
                           status == 405 ? "Allow: GET, HEAD\r\n" : "", size ? "Content-Type: " : "", size ? type : "", size ? "\r\n" : "", size, FIELDS);
    c->head_size = (size_t)n;
    c->body = body;
    c->body_size = head ? 0 : size;
    c->state = CLIENT_WRITES;
    c->deadline = clock_s() + WRITE_S;
}

static void refuse(struct client *c, int status, bool head)
{
    snprintf(c->words, sizeof c->words, "%d %s\n", status, reason_of(status));
    answer(c, status, head, "text/plain; charset=utf-8", c->words, status == 204 ? 0 : strlen(c->words));
}

/* False: the request is not whole yet. */
static bool take_request(struct client *c, struct live *l)
{
    const struct live_request r = live_request_parse(c->in, c->in_size, l->port);
    if (!r.status)
        return false;
    if (r.status != 200) {
        refuse(c, r.status, r.head);
    } else if (!r.data) {
        answer(c, 200, r.head, "text/html; charset=utf-8", l->page, l->page_size);
    } else if ((c->own = l->data(l->context, r.seen))) {
        answer(c, 200, r.head, "application/json", c->own, strlen(c->own));
    } else {
        refuse(c, 204, r.head);
    }
    if (r.status == 200 && r.data)
        atomic_store(&l->asked_ns, clock_ns());
    return true;
}

/* ---- bytes ---- */

/* Each of these says whether the client is now in another state, and may be ready for that. */

static bool would_wait(ssize_t n) { return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR); }

static bool leave(struct client *c)
{
    client_close(c);
    return false;
}

static bool read_request(struct client *c, struct live *l)
{
    if (!c->in && !(c->in = malloc(LIVE_REQUEST_MOST)))
        return leave(c);
    const ssize_t n = recv(c->fd, c->in + c->in_size, LIVE_REQUEST_MOST - c->in_size, 0);
    if (would_wait(n))
        return false;
    if (n <= 0)
        return leave(c);
    c->in_size += (size_t)n;
    return take_request(c, l);
}

/* A connection that is closed while bytes of its client are unread takes the answer with it. */
static bool linger(struct client *c)
{
    shutdown(c->fd, SHUT_WR);
    c->state = CLIENT_LEAVES;
    c->deadline = clock_s() + LINGER_S;
    return true;
}

static bool write_answer(struct client *c)
{
    const bool in_head = c->sent < c->head_size;
    const char *from = in_head ? c->head + c->sent : c->body + (c->sent - c->head_size);
    const size_t left = in_head ? c->head_size - c->sent : c->body_size - (c->sent - c->head_size);
    const ssize_t n = left ? send(c->fd, from, left, MSG_NOSIGNAL) : 0;
    if (n < 0)
        return would_wait(n) ? false : leave(c);
    c->sent += (size_t)n;
    return c->sent == c->head_size + c->body_size ? linger(c) : in_head && c->sent == c->head_size;
}

static bool read_rest(struct client *c)
{
    char away[1024];
    const ssize_t n = recv(c->fd, away, sizeof away, 0);
    return n > 0 || would_wait(n) ? false : leave(c);
}

/* What is asked for in one piece is answered in one go: a thread of low priority waits long for its next turn on a busy machine. */
void client_serve(struct client *c, struct live *l)
{
    while (c->state == CLIENT_READS ? read_request(c, l) : c->state == CLIENT_WRITES ? write_answer(c) : read_rest(c))
        ;
}
