/* Speed over openings: what stays as it is while two programs are open, where they lie in memory and on which cores their threads run, makes one faster than
 * the other though they be equal. So both are closed and opened anew several times, and turns are taken in each opening. Who is opened first changes, and
 * some pages before them, so that the same memory is not handed out again in the same order. */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/rng.h"
#include "prove/prove_int.h"

static const double PATIENCE = 4;           /* times as long as asked for, at most, where the interval stays wide */
static const double OPENING_SHARE = 0.5;    /* of the time, at most, to open and to warm up, as far as fewer openings help */
enum { SPACE_PAGES = 512 };

struct space {                              /* in front of what is opened */
    void *at;
    size_t bytes;
};

struct measuring {
    struct evidence *e;
    const struct config *of[2];             /* a, b */
    struct trial **open;                    /* (2) */
    const struct verify_options *o;
    struct space space;
    double start_s, seconds, most_s;        /* of turns and openings of both, as asked for by now */
    double cost_s;                          /* of an opening, without its turns */
    int planned;                            /* openings */
};

static void give_space(struct space *s)
{
    if (s->at)
        munmap(s->at, s->bytes);
    *s = (struct space){0};
}

/* Touched, or it would take no memory. Where there is none it is done without. */
static void take_space(struct space *s, uint64_t seed, int opening)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 1 + rng_below(seed, 0, (uint64_t)opening, SPACE_PAGES);
    void *at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    *s = (struct space){at, pages * page};
    for (size_t i = 0; i < pages; i++)
        ((volatile char *)at)[i * page] = 1;
}

static void tell(void *context)
{
    const struct measuring *m = context;
    if (m->o->progress)
        m->o->progress(m->o->context, m->e->longer ? "speed in turns, for longer" : "speed in turns", fmin((clock_s() - m->start_s) / m->seconds, 1));
}

static void close_both(struct measuring *m)
{
    for (int i = 0; i < 2; i++) {
        trial_free(m->open[i]);
        m->open[i] = NULL;
    }
    give_space(&m->space);
}

static enum status open_side(struct measuring *m, int side, struct error *err)
{
    return side ? trial_open(&m->open[1], m->of[1], m->o->change, m->o->change_context, err) : trial_open(&m->open[0], m->of[0], NULL, NULL, err);
}

static enum status open_anew(struct measuring *m, int opening, struct error *err)
{
    const int first = opening % 2;
    const double start = clock_s();
    close_both(m);
    take_space(&m->space, (uint64_t)m->e->limits->train.seed, opening);
    enum status st = open_side(m, first, err);
    if (st == OK)
        st = open_side(m, 1 - first, err);
    if (st == OK && m->e->gpu.address)
        m->e->gpu.address = trial_gpu_address(m->open[0]);
    for (int i = 0; i < 2 && st == OK; i++)
        st = turns_warm(m->open[i], err);
    m->cost_s = clock_s() - start;
    return st;
}

/* Known when the first is opened again: fewer, where they would take most of the time. */
static int openings_for(double seconds, double cost_s)
{
    return (int)fmin(fmax(floor(OPENING_SHARE * seconds / cost_s), OPENINGS_FEWEST), OPENINGS_USUAL);
}

/* Its part of what is left when all others have been opened. */
static double end_of_opening(const struct measuring *m, int opening)
{
    const double now = clock_s(), left = m->start_s + m->seconds - now;
    const int openings = m->planned - opening;
    return now + (left - (openings - 1) * m->cost_s) / openings;
}

/* Twice as long, in as many more openings as that is time for, where the limit is not surely on one side of a wide interval. */
static bool ask_for_more(struct measuring *m)
{
    const double spent = clock_s() - m->start_s, seconds = fmin(2 * fmax(m->seconds, spent), m->most_s), each = spent / m->e->openings;
    const int more = (int)floor((seconds - spent) / each);
    if (more < 1 || m->e->turns >= TURNS_MOST)
        return false;
    const struct speed s = speed_of(m->e);
    if (speed_is_sure(&s, 1 + m->e->limits->verify.min_gain))
        return false;
    m->planned += more;
    m->seconds = seconds;
    m->e->longer = true;
    return true;
}

enum status openings_measure(struct evidence *e, struct trial *open[2], const struct config *a, const struct config *b, double seconds,
                             const struct verify_options *options, struct error *err)
{
    const double most = options->most_seconds > 0 ? options->most_seconds : PATIENCE * seconds;
    struct measuring m = {.e = e, .of = {a, b}, .open = open, .o = options, .start_s = clock_s(), .seconds = 2 * seconds, .most_s = 2 * most,
                          .planned = OPENINGS_USUAL};
    gpu_watch_begin(&e->gpu, trial_gpu_address(open[0]));
    enum status st = turns_warm(open[0], err);
    if (st == OK)
        st = turns_warm(open[1], err);
    if (st == OK)
        st = turns_fit(e, open, seconds, err);
    for (int i = 0; st == OK && (i < m.planned || ask_for_more(&m)); i++) {
        if (i > 0)
            st = open_anew(&m, i, err);
        if (i == 1)
            m.planned = openings_for(m.seconds, m.cost_s);
        if (st == OK)
            st = turns_take(e, open, end_of_opening(&m, i), options->stop, tell, &m, err);
    }
    e->gpu.address = NULL;                  /* the trial's, which goes */
    give_space(&m.space);
    return st;
}
