/* The loop: predict, try the best, verify, keep or drop; then the whole gain in turns, and the same programs at other sizes. */
#include "prove/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "prove/moves.h"
#include "prove/prove.h"
#include "prove/tune_int.h"

static const double WORTH = 1.02;           /* predictions below are not tried alone */
static const double NOT_SLOWER = 0.995;     /* a pass that saves memory may cost so much */
static const double SAVES = 0.95;           /* of the memory, at most, to be kept for that */
static const double SCRATCH = 1.02, SCRATCH_BYTES = 4e6;    /* memory that a kernel's scratch may add: the larger of the two */
static const double KEPT_OPEN = 1e9;         /* a larger run is closed while the two of a proof are open */
enum { STEPS = 6, STAGE_STEPS = 5 };        /* profiled; of a stage's loss curve */

bool tuner_stopped(const struct tuner *t) { return t->o->stop && *t->o->stop; }

void tuner_tell(const struct tuner *t, const char *what)
{
    if (t->o->progress)
        t->o->progress(t->o->context, what, t->o->budget_s > 0 ? fmin(tuner_spent_s(t) / t->o->budget_s, 1) : 1);
}

/* What was switched off stays off, and is not proposed. Recompute stays on: it does nothing but where a step would need more memory
 * than it may, and there the base must have it, too. */
static struct config without_passes(const struct config *c)
{
    const int recompute = config_pass_find("recompute");
    struct config base = *c;
    base.optimize.passes = (struct pass_list){.choice = PASSES_NONE};
    for (int i = 0; pass_table[i].name; i++)
        base.optimize.pass[i] = c->optimize.pass[i] == PASS_OFF ? PASS_OFF : PASS_AUTO;
    if (config_pass_is_on(c, recompute))
        base.optimize.pass[recompute] = PASS_ON;
    return base;
}

/* ---- what could be done ---- */

static struct tune_stage stage_of(const struct move *m, const struct proposal *p)
{
    struct tune_stage s = {.answers = m->answers, .what = m->what, .effort = m->effort, .phase = move_phase(m), .places = p->places,
                           .around = m->gain == GAIN_AROUND_STEP,
                           .predicted = p->predicted, .measured = NAN, .low = NAN, .high = NAN};
    snprintf(s.pass, sizeof s.pass, "%s", m->name);
    snprintf(s.change, sizeof s.change, "%s", p->change);
    return s;
}

/* Passes that change nothing but speed and memory and are too small to be worth a try alone are tried together: small gains add up. */
static void join(struct tune_stage *all, const struct tune_stage *s)
{
    const size_t n = strlen(all->pass), m = strlen(all->change);
    snprintf(all->pass + n, sizeof all->pass - n, "%s%s", n ? "+" : "", s->pass);
    snprintf(all->change + m, sizeof all->change - m, "%s%s", m ? " + " : "", m ? s->pass : s->change);
    all->answers = n ? "several" : s->answers;
    all->what = n ? "the rest of the passes together, each of which wins little" : s->what;
    all->places += s->places;
    all->predicted *= s->predicted;
    all->effort = s->effort > all->effort ? s->effort : all->effort;
    all->phase = s->phase > all->phase ? s->phase : all->phase;
}

/* What is tried next. */
struct choice {
    uint64_t moves;                         /* bit i: move i; 0: nothing is left that changes anything */
    struct tune_stage stage;
    struct config next;
    enum move_gain gain;
    bool grows;                             /* may take more memory */
};

static void add_idea(struct tune_result *r, const struct move *m, const struct proposal *p)
{
    if (r->n_roadmap < TUNE_IDEAS)
        r->roadmap[r->n_roadmap++] = (struct tune_idea){.name = m->name, .what = m->what, .answers = m->answers,
                                                        .effort = m->effort, .places = p->places, .phase = move_phase(m),
                                                        .predicted = p->predicted};
}

static int by_phase_and_gain(const void *a, const void *b)
{
    const struct tune_idea *x = a, *y = b;
    if (x->phase != y->phase)
        return x->phase - y->phase;
    return (x->predicted < y->predicted) - (x->predicted > y->predicted);
}

/* What gives something for its speed comes after all that does not. */
static bool is_better(const struct tune_stage *a, const struct tune_stage *b)
{
    if ((a->phase == PHASE_TRADE) != (b->phase == PHASE_TRADE))
        return b->phase == PHASE_TRADE;
    return a->predicted > b->predicted;
}

/* The untried move that is expected to win most; when none is worth a try alone, all passes that are left together. A move that
 * changes nothing here may after another one, so it stays untried. */
static enum status choose(struct tuner *t, struct choice *best, struct error *err)
{
    const struct situation *now = t->situation;
    const bool first = t->tried == 0;
    struct choice rest = {.stage = {.predicted = 1, .measured = NAN, .low = NAN, .high = NAN}, .next = t->now};
    struct move m;
    *best = (struct choice){0};
    for (int i = 0; move_get(i, &m); i++) {
        struct proposal p;
        if (t->tried >> i & 1)
            continue;
        const enum status st = m.propose(&p, now, m.pass, err);
        if (st != OK)
            return st;
        if (!p.places)
            continue;
        if (first)
            add_idea(t->r, &m, &p);
        const struct tune_stage s = stage_of(&m, &p);
        if (p.predicted >= WORTH && (!best->moves || is_better(&s, &best->stage)))
            *best = (struct choice){(uint64_t)1 << i, s, p.next, m.gain, m.grows};
        if (m.pass >= 0 && !m.trade) {
            join(&rest.stage, &s);
            rest.moves |= (uint64_t)1 << i;
            rest.next = config_with_passes(&rest.next, (pass_set)1 << m.pass);
        }
    }
    if (rest.moves && (!best->moves || best->stage.phase == PHASE_TRADE))
        *best = rest;
    if (first)
        qsort(t->r->roadmap, (size_t)t->r->n_roadmap, sizeof *t->r->roadmap, by_phase_and_gain);
    return OK;
}

/* Measures what has been kept, once. */
static enum status look_around(struct tuner *t, struct error *err)
{
    if (t->situation)
        return OK;
    struct situation *s = xcalloc(1, sizeof *s);
    const struct situation_options options = {.steps = STEPS, .peaks = t->o->peaks, .stop = t->o->stop};
    const enum status st = situation_measure(s, &t->now, &options, err);
    if (st != OK) {
        free(s);
        return st;
    }
    t->situation = s;
    t->planned_bytes = s->p.planned_bytes;
    t->base_bytes = t->base_bytes > 0 ? t->base_bytes : t->planned_bytes;
    t->now.model = s->m.config.model;       /* the vocabulary is known now */
    if (!*t->r->bound)
        snprintf(t->r->bound, sizeof t->r->bound, "%s", s->p.headline);
    return OK;
}

static void forget_situation(struct tuner *t)
{
    if (t->situation)
        situation_release(t->situation);
    free(t->situation);
    t->situation = NULL;
}

/* ---- a stage ---- */

/* Keeps what holds every gate and is faster, or smaller and no slower. */
static void decide(struct tune_stage *s, const struct verdict *v)
{
    const struct gate *speed = verdict_gate(v, "throughput"), *memory = verdict_gate(v, "memory");
    s->measured = speed->value;
    s->low = speed->low;
    s->high = speed->high;
    for (int i = 0; i < v->n; i++)
        if (!v->gates[i].pass && &v->gates[i] != speed) {
            snprintf(s->why, sizeof s->why, "gate %s: %.250s", v->gates[i].name, v->gates[i].words);
            return;
        }
    const bool smaller = memory->b < SAVES * memory->a;
    s->kept = s->low > 1 || (smaller && s->measured > NOT_SLOWER);
    if (s->kept)
        snprintf(s->why, sizeof s->why, s->low > 1 ? "faster" : "no slower, and memory falls from %s to %s", memory->a_text,
                 memory->b_text);
    else
        snprintf(s->why, sizeof s->why, "not faster beyond the noise of the measurement: %s", speed->value_text);
}

static enum status prove(const struct tuner *t, struct verdict *v, struct config a, const struct config *b, bool grows,
                         struct error *err)
{
    const struct verify_options options = {.steps = STAGE_STEPS, .stop = t->o->stop};
    const double slack = fmax(SCRATCH, fmax(t->base_bytes, t->planned_bytes + SCRATCH_BYTES) / t->planned_bytes);
    a.verify.memory = grows ? INFINITY : fmax(a.verify.memory, slack);
    return verify_configs(v, &a, b, &options, err);
}

static enum status try_choice(struct tuner *t, struct choice *c, struct error *err)
{
    struct verdict v;
    char what[TUNE_NAMES + 64];
    if (t->planned_bytes > KEPT_OPEN)
        forget_situation(t);
    snprintf(what, sizeof what, "trying %s (expected %.2fx)", c->stage.pass, c->stage.predicted);
    tuner_tell(t, what);
    enum status st;
    if (c->gain == GAIN_AROUND_STEP)
        st = tune_measure_evaluation(&c->stage, &t->now, &c->next, err);
    else {
        st = prove(t, &v, t->now, &c->next, c->grows, err);
        if (st == OK)
            decide(&c->stage, &v);
    }
    if (st == CANNOT && !tuner_stopped(t)) {        /* the machine has not the memory for it: that ends this stage alone */
        snprintf(c->stage.why, sizeof c->stage.why, "it could not be tried: %.290s", err->text);
        st = OK;
    }
    if (st == OK && c->stage.kept) {
        t->now = c->next;
        forget_situation(t);
    }
    return st;
}

static void record(struct tuner *t, const struct tune_stage *s)
{
    t->r->stages[t->r->n_stages++] = *s;
    if (t->o->on_stage)
        t->o->on_stage(t->o->context, s);
}

static enum status run_stages(struct tuner *t, struct error *err)
{
    while (t->r->n_stages < TUNE_IDEAS) {
        struct choice next;
        tuner_tell(t, "profiling");
        enum status st = look_around(t, err);
        if (st == OK)
            st = choose(t, &next, err);
        if (tuner_stopped(t)) {
            t->r->interrupted = true;
            return OK;
        }
        if (st != OK || !next.moves)
            return st;
        t->tried |= next.moves;
        if (tuner_spent_s(t) >= t->o->budget_s) {
            t->r->out_of_time = true;
            snprintf(next.stage.why, sizeof next.stage.why, "no time was left to try it");
        } else
            st = try_choice(t, &next, err);
        if (st == OK)
            record(t, &next.stage);         /* also where the stop came right after it: what is kept is in the config */
        if (tuner_stopped(t)) {
            t->r->interrupted = true;
            return OK;
        }
        if (st != OK)
            return st;
    }
    return OK;
}

/* The whole gain: base and tuned in turns; not known where the memory for both at once is not to be had. */
static enum status measure_whole(struct tuner *t, struct error *err)
{
    struct tune_result *r = t->r;
    struct verdict v;
    tuner_tell(t, "base against tuned");
    const enum status st = prove(t, &v, r->base, &t->now, true, err);
    if (st != OK && (st != CANNOT || tuner_stopped(t)))
        return st;
    const struct gate *speed = st == OK ? verdict_gate(&v, "throughput") : NULL;
    r->speedup = speed ? speed->value : NAN;
    r->speedup_low = speed ? speed->low : NAN;
    r->speedup_high = speed ? speed->high : NAN;
    return tune_measure_ends(t, err);
}

enum status tune_run(struct tune_result *out, const struct config *c, const struct tune_options *options, struct error *err)
{
    *out = (struct tune_result){.base = without_passes(c), .speedup = 1, .speedup_low = 1, .speedup_high = 1};
    struct tuner t = {.r = out, .o = options, .now = out->base, .start_s = clock_s()};
    enum status st = run_stages(&t, err);
    forget_situation(&t);
    if (st == OK && !out->interrupted && options->budget_s > 0) {
        st = measure_whole(&t, err);
        if (tuner_stopped(&t)) {
            out->interrupted = true;
            st = OK;
        }
        if (st == OK && !out->interrupted)
            tune_measure_sizes(&t);
    }
    t.now.model.vocab = c->model.vocab;     /* as it was written */
    out->tuned = t.now;
    out->seconds = tuner_spent_s(&t);
    return st;
}
