/* Messages under way, and pairs of ranks that swap numbers: in pieces, of which some are under way while the one that came before is added up, so that
 * adding takes no time of its own and what is added is still in the cache. */
#include <time.h>

#include "core/arena.h"
#include "core/clock.h"
#include "dist/dist_int.h"

enum { PIECE = 1 << 16, AHEAD = 4 };                /* floats of a message; messages under way in each direction */
/* Who has moved nothing for so long sleeps: while the other rank is still at work, its core is better used by who computes; but once numbers
 * have begun to come, more of them will soon. */
static const int64_t ALONE_NS = 20000, MOVING_NS = 300000, SLEEP_NS = 50000;

/* ---- waiting ---- */

struct waiting {
    int64_t moved_ns;               /* when something moved last, or it began */
    bool moving;                    /* something has */
};

static struct waiting wait_begin(void) { return (struct waiting){.moved_ns = clock_ns()}; }

/* Between two looks; moved: the last one has seen something. False: the group has failed. */
static bool wait_on(struct dist *d, struct waiting *w, bool moved)
{
    const int64_t now = clock_ns();
    if (moved) {
        w->moved_ns = now;
        w->moving = true;
    } else if (now - w->moved_ns > (w->moving ? MOVING_NS : ALONE_NS)) {
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
    return notes_beat(d);
}

/* True: it is done, and *request NULL. */
static bool is_done(struct dist *d, void **request, bool *ok)
{
    const enum carried_state s = *ok && *request ? d->t->look(d->t, *request) : CARRY_PENDING;
    if (s == CARRY_PENDING)
        return false;
    *request = NULL;
    *ok = s == CARRY_DONE;
    return true;
}

bool carried_all(struct dist *d, void **left, int n)
{
    struct waiting w = wait_begin();
    bool ok = true;
    int open = n;
    for (int i = 0; i < n; i++)
        ok &= left[i] != NULL;
    while (ok && open) {
        const int before = open;
        for (int i = 0; i < n; i++)
            open -= is_done(d, &left[i], &ok);
        ok = ok && (!open || wait_on(d, &w, open < before));
    }
    for (int i = 0; i < n; i++)
        d->t->drop(d->t, left[i]);
    return ok;
}

/* ---- swapping ---- */

struct lane {                       /* one direction: pieces [done, begun) are under way, piece k in place k mod AHEAD */
    int64_t n, begun, done;         /* n: floats; the others: pieces */
    void *under_way[AHEAD];
};

static int64_t pieces_of(const struct lane *l) { return (l->n + PIECE - 1) / PIECE; }
static int64_t length_of(const struct lane *l, int64_t piece) { return l->n - piece * PIECE < PIECE ? l->n - piece * PIECE : PIECE; }
static bool can_begin(const struct lane *l) { return l->begun < pieces_of(l) && l->begun < l->done + AHEAD; }

static void add(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

struct exchange {
    struct dist *d;
    int with;
    const float *mine;
    float *theirs;
    float *pieces;                  /* (AHEAD, PIECE): what is to be added comes here; NULL: it goes to its place */
    struct lane out, in;
    bool ok;
};

static float *place_of(const struct exchange *x, int64_t piece) { return x->pieces ? x->pieces + piece % AHEAD * PIECE : x->theirs + piece * PIECE; }

static void begin_pieces(struct exchange *x)
{
    struct transport *t = x->d->t;
    for (; x->ok && can_begin(&x->in); x->in.begun++) {
        const size_t bytes = (size_t)length_of(&x->in, x->in.begun) * sizeof(float);
        x->ok = (x->in.under_way[x->in.begun % AHEAD] = t->receive(t, x->with, CHANNEL_DATA, place_of(x, x->in.begun), bytes)) != NULL;
    }
    for (; x->ok && can_begin(&x->out); x->out.begun++) {
        const size_t bytes = (size_t)length_of(&x->out, x->out.begun) * sizeof(float);
        x->ok = (x->out.under_way[x->out.begun % AHEAD] = t->send(t, x->with, CHANNEL_DATA, x->mine + x->out.begun * PIECE, bytes)) != NULL;
    }
}

/* Of each direction the oldest piece; true: one has come or gone. */
static bool end_pieces(struct exchange *x)
{
    const int64_t piece = x->in.done;
    const bool gone = is_done(x->d, &x->out.under_way[x->out.done % AHEAD], &x->ok), come = is_done(x->d, &x->in.under_way[piece % AHEAD], &x->ok);
    x->out.done += gone;
    x->in.done += come;
    if (come && x->ok && x->pieces)
        add(x->theirs + piece * PIECE, place_of(x, piece), length_of(&x->in, piece));
    return gone || come;
}

static bool is_whole(const struct exchange *x) { return x->in.done == pieces_of(&x->in) && x->out.done == pieces_of(&x->out); }

bool exchange_numbers(struct dist *d, int with, const float *mine, int64_t n, float *theirs, int64_t m, bool adds)
{
    struct exchange x = {.d = d, .with = with, .mine = mine, .theirs = theirs, .out.n = n, .in.n = m, .ok = true};
    struct waiting w = wait_begin();
    if (adds && !d->pieces)
        d->pieces = xcalloc(AHEAD * (size_t)PIECE, sizeof *d->pieces);
    x.pieces = adds ? d->pieces : NULL;
    while (x.ok && !is_whole(&x)) {
        begin_pieces(&x);
        const bool moved = end_pieces(&x);
        x.ok = x.ok && (is_whole(&x) || wait_on(d, &w, moved));
    }
    for (int i = 0; i < AHEAD; i++) {
        d->t->drop(d->t, x.in.under_way[i]);
        d->t->drop(d->t, x.out.under_way[i]);
    }
    return x.ok;
}
