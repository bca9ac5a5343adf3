/* Ranks as threads of one process: a transport for tests, and a function run on every rank. */
#ifndef HONE_TESTS_RANK_THREADS_H
#define HONE_TESTS_RANK_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "dist/dist.h"
#include "support/check.h"

enum { MOST_RANKS = 8 };

struct message {
    struct message *next;
    int from, to;
    enum channel channel;
    int64_t there_ns;
    size_t bytes;
    char data[];
};

struct world {
    int size;
    double patience_s;
    double delay_s;                 /* that a message takes */
    pthread_mutex_t lock;
    struct message *first, **end;
    bool frozen[MOST_RANKS];        /* sends nothing and hears nothing, as a process that was stopped */
};

struct post {
    struct transport base;
    struct world *world;
    int asked[MOST_RANKS], given[MOST_RANKS];       /* data from every rank: who asked first gets the first message */
};

struct parcel { bool sent; int from, turn; enum channel channel; void *data; size_t bytes; };

static inline struct world *world_of(struct transport *t) { return ((struct post *)t)->world; }

static inline void *post_send(struct transport *t, int to, enum channel c, const void *data, size_t bytes)
{
    struct world *w = world_of(t);
    if (bytes > MESSAGE_MOST)
        return NULL;
    struct parcel *p = xcalloc(1, sizeof *p);
    struct message *m = xcalloc(1, sizeof *m + bytes);
    *m = (struct message){.from = t->rank, .to = to, .channel = c, .bytes = bytes,
                          .there_ns = w->delay_s > 0 ? clock_ns() + (int64_t)(w->delay_s * 1e9) : 0};
    if (bytes)
        memcpy(m->data, data, bytes);
    p->sent = true;
    pthread_mutex_lock(&w->lock);
    if (w->frozen[t->rank]) {
        free(m);
    } else {
        *w->end = m;
        w->end = &m->next;
    }
    pthread_mutex_unlock(&w->lock);
    return p;
}

static inline void *post_receive(struct transport *t, int from, enum channel c, void *data, size_t bytes)
{
    struct parcel *p = xcalloc(1, sizeof *p);
    *p = (struct parcel){.from = from, .channel = c, .data = data, .bytes = bytes};
    if (from != ANY_RANK)
        p->turn = ((struct post *)t)->asked[from]++;
    return p;
}

static inline struct message **post_find(struct world *w, int to, const struct parcel *p)
{
    for (struct message **at = &w->first; *at; at = &(*at)->next)
        if ((*at)->to == to && (*at)->channel == p->channel && (p->from == ANY_RANK || p->from == (*at)->from))
            return (*at)->there_ns && clock_ns() < (*at)->there_ns ? NULL : at;
    return NULL;
}

static inline enum carried_state post_look(struct transport *t, void *request)
{
    struct world *w = world_of(t);
    struct parcel *p = request;
    pthread_mutex_lock(&w->lock);
    int *given = p->sent || p->from == ANY_RANK ? NULL : &((struct post *)t)->given[p->from];
    const bool waits = p->sent || w->frozen[t->rank] || (given && *given != p->turn);
    struct message **at = waits ? NULL : post_find(w, t->rank, p), *m = at ? *at : NULL;
    if (m && given)
        ++*given;
    if (m) {
        *at = m->next;
        w->end = w->end == &m->next ? at : w->end;
    }
    const bool frozen = w->frozen[t->rank];
    pthread_mutex_unlock(&w->lock);
    if (frozen || (!m && !p->sent))
        return CARRY_PENDING;
    const bool fits = p->sent || m->bytes == p->bytes;
    if (m && fits && m->bytes)
        memcpy(p->data, m->data, m->bytes);
    free(m);
    free(p);
    return fits ? CARRY_DONE : CARRY_FAILED;
}

static inline void post_drop(struct transport *t, void *request)
{
    (void)t;
    free(request);
}

static inline void post_close(struct transport *t, bool whole)
{
    (void)whole;
    free(t);
}

struct seat { struct world *world; int rank; void (*fn)(struct dist *d, void *argument); void *argument; enum status opened; };

static inline enum status post_open(struct transport **out, void *context, struct error *err)
{
    const struct seat *s = context;
    struct post *p = xcalloc(1, sizeof *p);
    (void)err;
    p->world = s->world;
    p->base = (struct transport){.rank = s->rank, .size = s->world->size, .send = post_send, .receive = post_receive, .look = post_look,
                                 .drop = post_drop, .close = post_close};
    *out = &p->base;
    return OK;
}

static inline void *seat_main(void *argument)
{
    struct seat *s = argument;
    struct dist *d;
    struct error err;
    s->opened = dist_open_over(&d, post_open, s, s->world->patience_s, &err);
    if (s->opened == OK) {
        s->fn(d, s->argument);
        dist_close(d);
    }
    return NULL;
}

/* fn on every rank of a world; asserts of a test belong behind it. */
static inline void on_ranks(struct world *w, void (*fn)(struct dist *d, void *argument), void *argument)
{
    struct seat seats[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    pthread_mutex_init(&w->lock, NULL);
    w->end = &w->first;
    for (int r = 0; r < w->size; r++) {
        seats[r] = (struct seat){w, r, fn, argument, OK};
        if (pthread_create(&threads[r], NULL, seat_main, &seats[r]))
            fail_msg("no thread for rank %d", r);
    }
    for (int r = 0; r < w->size; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(seats[r].opened, OK);
    }
    while (w->first) {
        struct message *m = w->first;
        w->first = m->next;
        free(m);
    }
    pthread_mutex_destroy(&w->lock);
}

#endif
