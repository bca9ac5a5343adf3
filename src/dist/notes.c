/* How ranks hear of each other: everyone tells rank 0 now and then that it is alive, and where it is; rank 0 tells everyone. Who was silent
 * for too long is lost. Rank 0 says so to all; when it is rank 0 that is silent, everyone knows by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arena.h"
#include "core/clock.h"
#include "dist/dist_int.h"

enum { DESCRIBED_MAX = WHERE_MAX + 64 };
static const int64_t LAST_WORDS_NS = 1000000000;

/* ---- failing ---- */

bool group_works(struct dist *d)
{
    pthread_mutex_lock(&d->lock);
    const bool works = d->failure.status == OK;
    pthread_mutex_unlock(&d->lock);
    return works;
}

void group_fail(struct dist *d, int lost, const struct error *why)
{
    pthread_mutex_lock(&d->lock);
    if (d->failure.status == OK) {
        d->failure = *why;
        d->lost = lost;
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* ---- sending ---- */

static void where(struct dist *d, char out[WHERE_MAX])
{
    pthread_mutex_lock(&d->looking);
    const struct op *op = atomic_load(&d->comm.at);
    const struct program *p = atomic_load(&d->comm.of);
    if (op && p)
        snprintf(out, WHERE_MAX, "%s %s", op_info(op->kind)->name, p->values[op->out[0]].name);
    else
        snprintf(out, WHERE_MAX, "%s", "");
    pthread_mutex_unlock(&d->looking);
}

/* Forgets what has arrived; true: a note to this rank is still on its way. */
static bool sweep(struct dist *d, int to)
{
    bool pending = false;
    for (struct sent_note **at = &d->sent; *at;) {
        struct sent_note *s = *at;
        if (d->t->look(d->t, s->request) == CARRY_PENDING) {
            pending |= s->to == to;
            at = &s->next;
        } else {
            *at = s->next;
            free(s);
        }
    }
    return pending;
}

static void tell(struct dist *d, int to, const struct note *n)
{
    if (to == d->comm.rank || (n->kind == NOTE_ALIVE && sweep(d, to)))
        return;                     /* it does not take what it was sent before */
    struct sent_note *s = xcalloc(1, sizeof *s);
    s->note = *n;
    s->to = to;
    s->request = d->t->send(d->t, to, CHANNEL_NOTES, &s->note, sizeof s->note);
    if (!s->request) {
        free(s);
        return;
    }
    s->next = d->sent;
    d->sent = s;
}

static void tell_all(struct dist *d, const struct note *n)
{
    if (d->comm.rank != 0)
        tell(d, 0, n);
    for (int r = 1; d->comm.rank == 0 && r < d->comm.size; r++)
        tell(d, r, n);
}

static void tell_alive(struct dist *d)
{
    struct note n = {.kind = NOTE_ALIVE, .rank = d->comm.rank, .lost = -1, .step = atomic_load(&d->step)};
    where(d, n.where);
    tell_all(d, &n);
}

/* A rank that gives up says why. Rank 0 passes on whatever has failed. */
static void tell_failure(struct dist *d)
{
    struct note n = {.rank = d->comm.rank, .step = atomic_load(&d->step)};
    pthread_mutex_lock(&d->lock);
    const bool leaving = d->leaving, passes_on = d->comm.rank == 0 && d->failure.status != OK && !d->told;
    n.kind = leaving ? NOTE_GIVES_UP : NOTE_FAILED;
    n.status = (int32_t)d->failure.status;
    n.lost = d->lost;
    snprintf(n.text, sizeof n.text, "%s", d->failure.text);
    d->leaving = false;
    pthread_mutex_unlock(&d->lock);
    if (!leaving && !passes_on)
        return;
    where(d, n.where);
    d->told = true;
    tell_all(d, &n);
}

/* ---- hearing ---- */

/* Ranks go in step: one that was last heard of in an earlier step than this rank is in has done that one since. What it did then is not known, but what
 * this rank misses it in. */
static void describe(struct dist *d, const struct peer *p, char out[DESCRIBED_MAX])
{
    const int64_t own = atomic_load(&d->step);
    char here[WHERE_MAX];
    where(d, here);
    if (p->step < 0 && own < 0)
        snprintf(out, DESCRIBED_MAX, "before the first step");
    else if (p->step < own)
        snprintf(out, DESCRIBED_MAX, "in step %lld%s%s", (long long)own, *here ? ", where it is missed in " : "", here);
    else
        snprintf(out, DESCRIBED_MAX, "in step %lld%s%s", (long long)p->step, *p->where ? ", in " : "", p->where);
}

static void gave_up(struct dist *d, const struct note *n)
{
    char at[DESCRIBED_MAX];
    struct error why;
    describe(d, &d->peers[n->rank], at);
    error_set(&why, n->status > OK && n->status <= CANNOT ? (enum status)n->status : CANNOT, "%s gave up %s: %.800s",
              d->peers[n->rank].name, at, n->text);
    group_fail(d, -1, &why);
}

static void take(struct dist *d, struct note *n)
{
    struct error why;
    if (n->rank < 0 || n->rank >= d->comm.size)
        return;
    n->where[WHERE_MAX - 1] = n->text[sizeof n->text - 1] = '\0';
    struct peer *from = &d->peers[n->rank];
    from->heard_ns = clock_ns();
    from->step = n->step;
    memcpy(from->where, n->where, sizeof from->where);
    if (n->kind == NOTE_GIVES_UP)
        gave_up(d, n);
    if (n->kind == NOTE_FAILED) {
        error_set(&why, n->status > OK && n->status <= CANNOT ? (enum status)n->status : CANNOT, "%s", n->text);
        group_fail(d, n->lost, &why);
    }
}

static void hear(struct dist *d)
{
    while (d->hearing) {
        const enum carried_state s = d->t->look(d->t, d->hearing);
        if (s == CARRY_PENDING)
            return;
        if (s == CARRY_DONE)
            take(d, &d->heard);
        d->hearing = d->t->receive(d->t, ANY_RANK, CHANNEL_NOTES, &d->heard, sizeof d->heard);
    }
}

static void look_for_lost(struct dist *d, int64_t now)
{
    const int first = d->comm.rank == 0 ? 1 : 0, end = d->comm.rank == 0 ? d->comm.size : 1;
    for (int r = first; r < end; r++) {
        const struct peer *p = &d->peers[r];
        char at[DESCRIBED_MAX];
        struct error why;
        if (now - p->heard_ns < d->patience_ns)
            continue;
        describe(d, p, at);
        error_set(&why, CANNOT, "%s was not heard of for %.0f s; it was %s. It was killed or stopped, or its machine cannot be "
                  "reached; `--resume` goes on from the newest checkpoint", p->name, (double)(now - p->heard_ns) * 1e-9, at);
        group_fail(d, r, &why);
        return;
    }
}

bool notes_beat(struct dist *d)
{
    const int64_t now = clock_ns();
    if (now < d->beat_at_ns)
        return true;
    d->beat_at_ns = now + d->beat_ns;
    hear(d);
    tell_alive(d);
    if (group_works(d))
        look_for_lost(d, clock_ns());
    tell_failure(d);
    return group_works(d);
}

/* ---- the ends ---- */

void notes_open(struct dist *d)
{
    for (int r = 0; r < d->comm.size; r++)
        d->peers[r].heard_ns = clock_ns();
    d->hearing = d->t->receive(d->t, ANY_RANK, CHANNEL_NOTES, &d->heard, sizeof d->heard);
}

/* Who does not take a note has gone; its memory may still be read by the transport, and stays. */
static struct sent_note *left_behind;
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

void notes_close(struct dist *d)
{
    const int64_t until = clock_ns() + LAST_WORDS_NS;
    d->t->drop(d->t, d->hearing);
    d->hearing = NULL;
    for (sweep(d, -1); d->sent && clock_ns() < until; sweep(d, -1))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    while (d->sent) {
        struct sent_note *s = d->sent;
        d->sent = s->next;
        d->t->drop(d->t, s->request);
        pthread_mutex_lock(&left_lock);
        s->next = left_behind;
        left_behind = s;
        pthread_mutex_unlock(&left_lock);
    }
}
