/* Choosing kernels' variants by timing them: every piece of work of a program once, before its first
 * step, into the program's own memory. Choices are remembered by machine, kernels, threads and shapes (core/choices.h). Variants round differently, so nothing is timed
 * where the choice could not be remembered: every run would choose anew, and two runs would differ.
 *
 * Variants are read in turns, and what counts is how long one took beside the first one, in the middle of the rounds: not the best of the readings, since tiles of AMX on a machine
 * that others share were seen at full speed for moments; and not one middle beside another, since such a machine changes its pace for seconds, and a round has one.
 *
 * Nothing has been computed yet, and zeros are not what a step multiplies: they take less power, and AMX at its best was a quarter faster on them than on others. So inputs are
 * numbers of any size and sign, in memory of their own. Only what runs alone like this is timed. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/bf16.h"
#include "core/choices.h"
#include "core/clock.h"
#include "core/setup.h"
#include "core/stats.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"

enum {
    VARIANTS_MOST = 8, KEY_MOST = 480,
    REPEATS_MOST = 256,         /* runs of a small op in one reading */
    SERIES = 2,                 /* readings go into these in turns */
    ROUNDS = 6,                 /* readings of every variant, more until they took VARIANT_US, fewer beyond VARIANT_MOST_US */
    READINGS_MOST = 64,         /* in a series */
    PAGE = 4096,
};
static const double READING_US = 400, VARIANT_US = 20e3, VARIANT_MOST_US = 200e3;
static const char SHOWN[] = "";          /* through choices_tell */
static const double WINS = 0.98;        /* of the first variant's time: less would let noise choose */
static const double LOST = 1.25, LOST_AT_ONCE = 2.5;     /* times the first variant's time: read no more, after ROUNDS readings, or fewer */

/* ---- the key ---- */

static char machine[160];

static void read_machine(void)
{
    struct cpu_machine m;
    cpu_machine_read(&m);
    memcpy(machine, m.fingerprint, sizeof machine);
}

/* "implementer 0x41 part 0xd0c, 2 cores, neon, blis, kernels 0123456789abcdef, 2 threads: matmul blocks NT f32 (64, 24) f32 (72, 24)".
 * False: it would be too long. */
static bool write_key(const struct kernel_call *c, int threads, char key[KEY_MOST])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct op_attrs *a = &c->op->attrs;
    char shape[64];
    pthread_once(&once, read_machine);
    int n = snprintf(key, KEY_MOST, "%s, kernels %s, %d threads: %s %s %c%c", machine, cpu_kernels_id, threads, op_info(c->op->kind)->name,
                     c->kernel->name, a->trans_a ? 'T' : 'N', a->trans_b ? 'T' : 'N');
    if (a->parts && n < KEY_MOST)
        n += snprintf(key + n, (size_t)(KEY_MOST - n), " parts=%d", a->parts);
    if (a->round == ROUND_BF16 && n < KEY_MOST)
        n += snprintf(key + n, (size_t)(KEY_MOST - n), " bf16");
    for (int i = 0; i < c->op->n_in && n < KEY_MOST; i++)
        n += snprintf(key + n, (size_t)(KEY_MOST - n), " %s %s", dtype_name(call_in(c, i)->dtype),
                      shape_text(call_in(c, i)->shape, shape));
    return n < KEY_MOST;
}

/* ---- timing ---- */

/* Every thread writes its part of the inputs that are numbers. */
static void fill_inputs(const struct kernel_call *c, const struct kernel_thread *t)
{
    for (int i = 0; i < c->op->n_in; i++) {
        const enum dtype type = call_in(c, i)->dtype;
        const struct span mine = team_span(in_count(c, i), PAGE, t->index, t->count);
        for (int64_t at = mine.lo; at < mine.hi && type == F32; at++)
            ((float *)c->in[i])[at] = cpu_number_at(at);
        for (int64_t at = mine.lo; at < mine.hi && type == BF16; at++)
            ((uint16_t *)c->in[i])[at] = bf16_bits(cpu_number_at(at));
    }
}

static const struct kernel fill = {.name = "fill", .run = fill_inputs};

/* Pages of an input: each has its own. */
static size_t input_room(const struct kernel_call *c, int i) { return (value_bytes(call_in(c, i)) + PAGE - 1) / PAGE * PAGE; }

/* Gives the call inputs of its own, filled; returns their memory. NULL: there is none, and it keeps those that it has. */
static char *take_inputs(struct kernel_call *c, void **at, struct backend *b)
{
    size_t room = 0;
    for (int i = 0; i < c->op->n_in; i++)
        room += input_room(c, i);
    char *memory = cpu_memory_take(room), *next = memory;
    if (!memory)
        return NULL;
    for (int i = 0; i < c->op->n_in; next += input_room(c, i), i++)
        at[i] = next;
    c->in = at;
    struct kernel_call filling = *c;
    filling.kernel = &fill;
    cpu_run_calls(b, &filling, 1);
    return memory;
}

/* A call that runs another one several times, and how long. */
struct repeated {
    struct kernel_call call;        /* what the backend runs; its kernel is `repeat` */
    const struct kernel *kernel;
    bool sums;                      /* it leaves something to sum up */
    int repeats;
    int64_t *thread_ns;             /* (threads) */
};

/* What a thread has worked, without what others got of its core meanwhile: a choice that lasts must not depend on them. */
static int64_t thread_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The sums behind a run. */
static int64_t finish_ns(const struct repeated *r, const struct kernel_thread *t)
{
    const int64_t start = thread_clock_ns();
    r->kernel->finish(&r->call, t);
    const int64_t ns = thread_clock_ns() - start;
    team_barrier(t->team);
    return ns;
}

static void run_repeated(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct repeated *r = (const struct repeated *)c;
    int64_t ns = 0;
    for (int i = 0; i < r->repeats; i++) {
        const int64_t start = thread_clock_ns();
        if (!r->kernel->serial || t->index == 0)
            r->kernel->run(c, t);
        ns += thread_clock_ns() - start;
        team_barrier(t->team);
        if (r->sums)
            ns += finish_ns(r, t);
    }
    r->thread_ns[t->index] = ns;
}

static const struct kernel repeat = {.name = "repeat", .run = run_repeated};

struct bout {
    struct backend *backend;
    struct repeated run;
    int variants;
    double us[VARIANTS_MOST][SERIES][READINGS_MOST];
    int readings[VARIANTS_MOST][SERIES];
    bool lost[VARIANTS_MOST];
};

/* One run on the thread that works longest, of so many in a row. */
static double reading_us(struct bout *b, int variant, int repeats)
{
    int64_t ns = 1;
    b->run.call.variant = variant;
    b->run.repeats = repeats;
    cpu_run_calls(b->backend, &b->run.call, 1);
    for (int i = 0; i < b->backend->lanes; i++)
        ns = b->run.thread_ns[i] > ns ? b->run.thread_ns[i] : ns;
    return (double)ns / 1e3 / repeats;
}

/* Runs each variant once or twice, so that its code and buffers are there; where that takes long, the first once, so that its
 * memory is. Returns how often a reading should repeat them. */
static int warm_up(struct bout *b)
{
    double us = 1e30;
    for (int round = 0; round < 2 && (round == 0 || us < READING_US); round++)
        for (int v = 0; v < b->variants && (v == 0 || us < VARIANT_US) && setup_goes_on(SHOWN); v++) {
            const double this_us = b->lost[v] ? us : reading_us(b, v, 1);
            us = this_us < us ? this_us : us;
        }
    const double repeats = READING_US / us;
    return repeats < 1 ? 1 : repeats > REPEATS_MOST ? REPEATS_MOST : (int)repeats;
}

/* The middle of a series: of times, or of times beside the first variant's in the same round. 0: there is none. */
static double middle_of(const struct bout *b, int v, int series, bool beside)
{
    double sorted[READINGS_MOST];
    const int n = b->readings[v][series];
    for (int i = 0; i < n; i++)
        sorted[i] = b->us[v][series][i] / (beside ? b->us[0][series][i] : 1);
    stats_sort(sorted, n);
    return n ? stats_percentile(sorted, n, 0.5) : 0;
}

/* Of both series, which have as many rounds. */
static double share(const struct bout *b, int v) { return (middle_of(b, v, 0, true) + middle_of(b, v, 1, true)) / SERIES; }
static double better_share(const struct bout *b, int v) { return fmin(middle_of(b, v, 0, true), middle_of(b, v, 1, true)); }
static double worse_share(const struct bout *b, int v) { return fmax(middle_of(b, v, 0, true), middle_of(b, v, 1, true)); }

/* In turns, so that what disturbs the machine disturbs all of them. */
static void read_round(struct bout *b, int series, int repeats)
{
    for (int v = 0; v < b->variants && setup_goes_on(SHOWN); v++) {
        if (!b->lost[v])
            b->us[v][series][b->readings[v][series]++] = reading_us(b, v, repeats);
    }
}

/* How many are left besides the first. */
static int drop_lost(struct bout *b)
{
    int left = 0;
    const double lost = b->readings[0][0] + b->readings[0][1] < ROUNDS ? LOST_AT_ONCE : LOST;
    for (int v = 1; v < b->variants; v++) {
        b->lost[v] = b->lost[v] || better_share(b, v) > lost;
        left += !b->lost[v];
    }
    return left;
}

static bool goes_on(int rounds, double us_each)
{
    return rounds < SERIES || (us_each < VARIANT_MOST_US && (rounds < ROUNDS || (us_each < VARIANT_US && rounds < SERIES * READINGS_MOST)));
}

static void read_all(struct bout *b)
{
    const int repeats = warm_up(b);
    const int64_t start = clock_ns();
    int left = drop_lost(b);
    for (int rounds = 0; left > 0 && !setup_was_stopped() && goes_on(rounds, (double)(clock_ns() - start) / 1e3 / (left + 1)); rounds++) {
        read_round(b, rounds % SERIES, repeats);
        if (rounds % SERIES == SERIES - 1)
            left = drop_lost(b);
    }
}

/* What a variant has to stay below, of the first one's time; 0: this machine has it not. */
static double below(const struct kernel *k, int variant) { return variant > 0 && k->below ? fmin(WINS, k->below(variant)) : WINS; }

/* Both series of a variant that is taken are better than those of the first, by as much as noise does not make. */
static void time_variants(struct backend *backend, const struct kernel_call *call, struct choice *c)
{
    struct bout b = {.backend = backend, .run = {.call = *call, .kernel = call->kernel, .sums = call->sums != WHOLE}};
    b.run.call.kernel = &repeat;
    b.run.call.sums = WHOLE;
    b.run.call.leave = NULL;                /* what it says is known in a step */
    b.run.thread_ns = xcalloc((size_t)backend->lanes, sizeof *b.run.thread_ns);
    for (; b.variants < VARIANTS_MOST && c->variants[b.variants]; b.variants++)
        b.lost[b.variants] = below(call->kernel, b.variants) <= 0;
    void **at = xcalloc((size_t)call->op->n_in + 1, sizeof *at);
    char *inputs = take_inputs(&b.run.call, at, backend);
    read_all(&b);
    cpu_memory_give(inputs);
    free(at);
    c->variant = 0;
    for (int v = 1; v < b.variants; v++)
        if (!b.lost[v] && worse_share(&b, v) < below(call->kernel, v) && share(&b, v) < share(&b, c->variant))
            c->variant = v;
    c->first_us = fmin(middle_of(&b, 0, 0, false), middle_of(&b, 0, 1, false));
    c->us = c->first_us * share(&b, c->variant);
    free(b.run.thread_ns);
}

/* ---- the calls of a program ---- */

/* Products of bf16 have one way on a CPU that multiplies it (gemm.h). */
static bool has_variants(const struct kernel_call *c)
{
    const char *const *names = c->kernel->variants;
    bool several = false;
    for (int v = 1; names && names[0] && names[v]; v++)
        several = several || below(c->kernel, v) > 0;
    return several && !(c->op->attrs.round == ROUND_BF16 && cpu_has_bf16());
}

/* Whether it can run before anything else has: it changes nothing that it reads, and where it reads numbers of tokens or classes,
 * they are inputs, which are zero until the first batch. */
static bool runs_alone(const struct kernel_call *c)
{
    bool good = op_updated(c->op->kind, &c->op->attrs) == 0;
    for (int i = 0; i < c->op->n_in; i++)
        good = good && (call_in(c, i)->dtype != I32 || call_in(c, i)->kind == VALUE_INPUT);
    for (int i = 0; i < c->op->n_out; i++)
        good = good && !value_is_persistent(call_out(c, i));
    return good;
}

/* Work that is done by one or more calls of a program. */
struct job {
    char key[KEY_MOST];
    const struct kernel_call *call;         /* the first */
};

static int job_with_key(const struct job *jobs, int n, const char *key)
{
    int i = 0;
    while (i < n && strcmp(jobs[i].key, key) != 0)
        i++;
    return i;
}

/* The different pieces of work; job_of[i] is that of calls[i], or -1. */
static int find_jobs(const struct kernel_call *calls, int n, int threads, struct job *jobs, int *job_of)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        const struct kernel_call *c = &calls[i];
        job_of[i] = -1;
        if (!c->op->timed || !has_variants(c) || !runs_alone(c) || !write_key(c, threads, jobs[found].key))
            continue;
        jobs[found].call = c;
        job_of[i] = job_with_key(jobs, found, jobs[found].key);
        found += job_of[i] == found;
    }
    return found;
}

static void choose(struct backend *b, const struct job *jobs, struct choice *choices, int n)
{
    const int missing = choices_recall(choices, n);
    int timed = 0;
    if (missing == 0)
        return;
    if (choices_remember(NULL, 0, NULL) != OK) {
        choices_settle(choices, n);
        return;
    }
    choices_tell(0, missing);
    for (int i = 0; i < n && setup_goes_on(SHOWN); i++)
        if (choices[i].variant < 0) {
            time_variants(b, jobs[i].call, &choices[i]);
            choices_tell(++timed, missing);
        }
    if (setup_was_stopped() || choices_remember(choices, n, NULL) != OK) {
        choices_recall(choices, n);         /* without the new ones */
        choices_settle(choices, n);
    }
}

void cpu_tune(struct backend *b, struct kernel_call *calls, int n)
{
    struct job *jobs = xcalloc((size_t)n + 1, sizeof *jobs);
    int *job_of = xcalloc((size_t)n + 1, sizeof *job_of);
    const int found = find_jobs(calls, n, b->lanes, jobs, job_of);
    struct choice *choices = xcalloc((size_t)found + 1, sizeof *choices);
    for (int i = 0; i < found; i++)
        choices[i] = (struct choice){.key = jobs[i].key, .variants = jobs[i].call->kernel->variants};
    if (found)
        choose(b, jobs, choices, found);
    for (int i = 0; i < n; i++) {
        const struct choice *c = job_of[i] < 0 ? NULL : &choices[job_of[i]];
        if (c && c->variant > 0) {
            calls[i].variant = c->variant;
            calls[i].saves_us = c->first_us - c->us;
        }
    }
    free(jobs);
    free(job_of);
    free(choices);
}
