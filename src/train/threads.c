/* How many threads a step gets where the config leaves that open (threads: 0): all cores, or fewer where a step is too small for all of them, by
 * measurement. A few steps on random tokens, of programs that are made for it and thrown away: nothing of the run has begun. What was chosen
 * is kept with the choices of kernels (core/choices.h), as bits hang on it: it is made once for a machine and a program, and not at all where
 * it could not be kept, or where it hangs on other work that took the cores just then: a thread without a core holds up all others, so that
 * fewer threads seem faster than they are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/arena.h"
#include "core/choices.h"
#include "core/clock.h"
#include "core/delay.h"
#include "core/json_memory.h"
#include "core/setup.h"
#include "core/stats.h"
#include "ops/cpu/cpu.h"
#include "passes/passes.h"
#include "train/train_int.h"

enum { CANDIDATES = 13, NAME = 24, KEY = 480, TURN_STEPS = 64, SERIES = 2, ROUNDS = 6 };      /* 4096 threads and their halves */
static const double WINS = 0.97;                    /* of the time of all cores: fewer are taken only then */
static const double LOST = 1.15;                    /* of the time of all cores, in the first reading of each series: read no more */
static const double BUDGET_S = 0.3, TURN_S = 0.002;
static const double CORE_FLOPS = 20e9;              /* what a core does at least, to judge a step before it was run */
static const double LONG_STEP_S = 0.015, SHORT_STEP_S = 0.001;     /* on all cores: too long to try. On one: it may be the fastest */
static const double BYTES_MOST = 256e6;             /* for a program beside the run's own */

/* ---- what there is to choose from ---- */

struct candidates {
    int n, threads[CANDIDATES];
    char names[CANDIDATES][NAME];
    const char *list[CANDIDATES + 1];
};

/* All cores, half of them, and so on. */
static struct candidates candidates_of(int cores, int least)
{
    struct candidates c = {0};
    for (int n = cores; c.n < CANDIDATES && n >= least; n /= 2) {
        snprintf(c.names[c.n], NAME, "%d threads", n);
        c.threads[c.n++] = n;
    }
    return c;
}

static void hash_value(XXH3_state_t *h, const struct program *p, value_id id)
{
    const struct value *v = &p->values[id];
    XXH3_64bits_update(h, &v->dtype, sizeof v->dtype);
    XXH3_64bits_update(h, &v->shape.rank, sizeof v->shape.rank);
    XXH3_64bits_update(h, v->shape.dim, (size_t)v->shape.rank * sizeof *v->shape.dim);
}

/* Its ops with their shapes and types: all that its speed depends on. */
static uint64_t hash_ops(const struct program *p)
{
    XXH3_state_t *h = xneed(XXH3_createState());
    XXH3_64bits_reset(h);
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        const int facts[] = {(int)op->kind, (int)op->phase, op->attrs.trans_a, op->attrs.trans_b, (int)op->attrs.round, op->n_in, op->n_out};
        XXH3_64bits_update(h, facts, sizeof facts);
        for (int k = 0; k < op->n_in; k++)
            hash_value(h, p, op->in[k]);
        for (int k = 0; k < op->n_out; k++)
            hash_value(h, p, op->out[k]);
    }
    const uint64_t hash = XXH3_64bits_digest(h);
    XXH3_freeState(h);
    return hash;
}

static void write_key(char key[KEY], const struct program *p, int cores)
{
    struct cpu_machine m;
    cpu_machine_read(&m);
    snprintf(key, KEY, "%s, kernels %s, %d usable: threads of a step %016llx, %d ops in %d", m.fingerprint, cpu_kernels_id, cores,
             (unsigned long long)hash_ops(p), p->n_ops, p->micro_batches);
}

/* ---- timing ---- */

struct reading { double us, own_us; };      /* of a step, as it was, and without what its threads waited for cores: it takes no less */

struct side {
    struct model_run run;
    struct loader *loader;
    struct reading series[SERIES];  /* the least of the turns' medians; us 0: none yet */
};

static void side_close(struct side *s)
{
    if (!s)
        return;
    loader_free(s->loader);
    model_run_close(&s->run);
    free(s);
}

/* NULL: it cannot be run. */
static struct side *side_open(struct config *c, int threads)
{
    struct side *s = xcalloc(1, sizeof *s);
    struct dataset *d = NULL;
    struct error ignored;
    c->settled_threads = threads;
    enum status st = bench_open_data(&d, c, &ignored);
    if (st == OK)
        st = model_run_open(&s->run, c, d, &ignored);
    if (st == OK)
        st = model_run_loader(&s->loader, &s->run, 0, 0, 1, &ignored);
    if (st == OK)
        return s;
    side_close(s);
    return NULL;
}

/* The median of some steps; the first, in which the other side's threads go to sleep, does not count. */
static enum status take_turn(struct side *s, int steps, struct reading *out, struct error *err)
{
    double times[TURN_STEPS];
    bool whole;
    const int lanes = s->run.backend->lanes;
    enum status st = model_run_step(&s->run, s->loader, NULL, &whole, err);
    const struct delay delay = delay_begin();
    for (int i = 0; i < steps && st == OK; i++) {
        const int64_t start = clock_ns();
        st = model_run_step(&s->run, s->loader, NULL, &whole, err);
        times[i] = (double)(clock_ns() - start) / 1e3;
    }
    if (st != OK)
        return st;
    stats_sort(times, steps);
    const double us = stats_percentile(times, steps, 0.5), share = delay_share(&delay, lanes);
    *out = (struct reading){us, delay_is_much(share) ? us * fmax(0, 1 - lanes * share) : us};
    return OK;
}

static int turn_steps(double us)
{
    const double steps = TURN_S * 1e6 / us;
    return steps < 3 ? 3 : steps > TURN_STEPS ? TURN_STEPS : (int)steps;
}

static void keep_least(struct reading *kept, struct reading r)
{
    if (!(kept->us > 0) || r.us < kept->us)
        *kept = r;
}

/* Of its series the better one, and the worse one. */
static struct reading least(const struct side *s)
{
    return (struct reading){fmin(s->series[0].us, s->series[1].us), fmin(s->series[0].own_us, s->series[1].own_us)};
}
static struct reading most(const struct side *s)
{
    return (struct reading){fmax(s->series[0].us, s->series[1].us), fmax(s->series[0].own_us, s->series[1].own_us)};
}

static bool is_late(double deadline_s) { return clock_s() > deadline_s || !setup_goes_on(""); }

/* Turns of both. False: there was no time for them. */
static bool time_pair(struct side *all, struct side *fewer, double deadline_s)
{
    struct side *sides[] = {all, fewer};
    struct error ignored;
    struct reading r = {1, 1};
    for (int i = 0; i < 2; i++) {
        memset(sides[i]->series, 0, sizeof sides[i]->series);
        if (take_turn(sides[i], 1, &r, &ignored) != OK)
            return false;
    }
    for (int round = 0; round < ROUNDS && (round != SERIES || least(fewer).own_us < LOST * least(all).us); round++)
        for (int i = 0; i < 2; i++) {
            if (is_late(deadline_s) || take_turn(sides[i], turn_steps(r.us), &r, &ignored) != OK)
                return round >= SERIES;
            keep_least(&sides[i]->series[round % SERIES], r);
        }
    return true;
}

/* Each in turns with all cores; the ratio to these decides. The worse series of fewer threads must beat the better one of all, also without what
 * the latter waited for cores. Where only that wait makes it win, nothing is known (variant -1). */
static void time_candidates(struct config *c, const struct candidates *of, struct choice *out)
{
    const double deadline = clock_s() + BUDGET_S;
    struct side *all = side_open(c, of->threads[0]), *fewer = NULL;
    bool unknown = false;
    double best = 1;
    out->variant = 0;
    out->us = out->first_us = 1;
    for (int i = 1; i < of->n && all && !is_late(deadline); i++) {
        fewer = side_open(c, of->threads[i]);
        const bool timed = fewer && time_pair(all, fewer, deadline);
        const bool wins = timed && most(fewer).us < WINS * least(all).own_us, seems_to = timed && most(fewer).own_us < WINS * least(all).us;
        if (wins && least(fewer).us / least(all).us < best) {
            best = least(fewer).us / least(all).us;
            *out = (struct choice){out->key, out->variants, i, least(fewer).us, least(all).us};
        } else if (timed && out->variant == 0)
            out->us = out->first_us = least(all).us;
        unknown |= seems_to && !wins;
        side_close(fewer);
    }
    side_close(all);
    if (unknown && out->variant == 0)
        out->variant = -1;
}

/* ---- choosing ---- */

static void choose(struct config *c, struct candidates *of, const struct program *p, struct choice *out)
{
    for (int i = 0; i < of->n; i++)
        of->list[i] = of->names[i];
    out->variants = of->list;
    if (of->n < 2 || choices_recall(out, 1) == 0)
        return;
    if (choices_remember(NULL, 0, NULL) == OK && pass_planned_bytes(p) < BYTES_MOST)
        time_candidates(c, of, out);
    if (out->variant < 0 || setup_was_stopped() || choices_remember(out, 1, NULL) != OK) {
        choices_settle(out, 1);
        out->variant = 0;
    }
}

static void settle(struct config *c, int cores, struct config *known, char words[THREADS_WORDS])
{
    struct program *p;
    struct error ignored;
    char key[KEY];
    if (train_step_program(&p, known, known->train.steps, NULL, &ignored) != OK)
        return;                     /* the run itself will say why */
    const double flops = model_step_flops(p, &known->model, known->train.batch_size * known->train.accumulate);
    struct candidates of = candidates_of(cores, flops < SHORT_STEP_S * CORE_FLOPS ? 1 : 2);
    struct choice choice = {.key = key, .variant = -1};
    write_key(key, p, cores);
    known->optimize.pass[pass_find("autotune")] = PASS_OFF;         /* its bouts take longer than all of this */
    if (flops < LONG_STEP_S * CORE_FLOPS * cores)
        choose(known, &of, p, &choice);
    program_free(p);
    if (choice.variant > 0) {
        c->settled_threads = of.threads[choice.variant];
        snprintf(words, THREADS_WORDS, "%d of %d, measured: %.3g ms; %d: %.3g ms", c->settled_threads, cores, choice.us / 1e3, cores,
                 choice.first_us / 1e3);
    }
}

static bool is_open(const struct config *c)
{
    return c->threads == 0 && c->settled_threads == 0 && c->device != DEVICE_CUDA && dist_size(ranks_of(c)) == 1 &&
           c->backend.kernels != KERNELS_REFERENCE;
}

/* A vocabulary that the data decides is looked up there. */
static void find_vocab(struct config *c)
{
    struct dataset *d = NULL;
    struct error ignored;
    if (!c->model.vocab && dataset_open(&d, c, &ignored) == OK)
        c->model.vocab = dataset_vocab(d);
    dataset_free(d);
}

void train_settle_threads(struct config *c, char words[THREADS_WORDS])
{
    const int cores = cpu_usable_cores();
    *words = '\0';
    if (!is_open(c) || cores < 2)
        return;
    struct config *known = xcalloc(1, sizeof *known);
    *known = *c;
    find_vocab(known);
    *known = bench_config(known);
    known->train.epochs = 0;
    settle(c, cores, known, words);
    free(known);
}

/* What run.json says that the run had on a CPU; 0: nothing. */
static int threads_before(const char *out)
{
    char path[CONFIG_PATH_MAX + 32];
    struct error ignored;
    json_t *j = NULL;
    snprintf(path, sizeof path, "%s/run.json", out);
    if (json_memory_read_object(&j, path, 1 << 16, "", &ignored) != OK)
        return 0;
    const char *device = json_string_value(json_object_get(j, "device"));
    const json_int_t threads = json_integer_value(json_object_get(j, "threads"));
    const bool known = device && !strcmp(device, "cpu") && threads > 0 && threads <= INT32_MAX;
    json_decref(j);
    return known ? (int)threads : 0;
}

void train_resume_threads(struct config *c, const char *out, char words[THREADS_WORDS])
{
    const int cores = cpu_usable_cores(), before = is_open(c) ? threads_before(out) : 0;
    *words = '\0';
    if (before > cores)
        snprintf(words, THREADS_WORDS, "%d, where the run had %d before: its last bits change", cores, before);
    else
        c->settled_threads = before ? before : c->settled_threads;
    if (before && before < cores)
        snprintf(words, THREADS_WORDS, "%d of %d, as the run had before; threads: %d takes all", before, cores, cores);
}
