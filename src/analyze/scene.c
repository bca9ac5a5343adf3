/* The scene that rules look at: the profile's numbers made safe, and what several rules ask of them. */
#include <math.h>
#include <string.h>

#include "analyze/rules.h"
#include "core/show.h"

static const double CALL_MOST_US = 20;      /* to start an op on all threads; a busy machine makes it look like more */

static const double WAIT_SHOWS = 0.005;     /* of the step: less does not show in its digits */

double positive(double x) { return isfinite(x) && x > 0 ? x : 0; }

/* Gaps are found by a word of their name. */
static double gap_us(const struct profile *p, const char *word)
{
    double sum = 0;
    for (int i = 0; i < p->n_gaps; i++)
        if (strstr(p->gaps[i].name, word))
            sum += positive(p->gaps[i].us);
    return sum;
}

static double op_imbalance_us(const struct profile *p)
{
    double sum = 0;
    for (int i = 0; i < p->n_ops; i++)
        sum += positive(p->ops[i].imbalance_us);
    return sum;
}

/* Steps are measured with rows of model.seq tokens; with data.bucket those of a run are shorter, and have less padding. */
static double rows_scale(const struct run_facts *f)
{
    const double run = positive(f->padding), measured = positive(f->padding_rows);
    const double scale = !f->packs && run < measured && measured < 1 ? (1 - measured) / (1 - run) : 1;
    return scale < 0.995 ? scale : 1;       /* the two are means over other samples */
}

void scene_init(struct scene *s, struct profile *p, const struct program *program, const struct run_facts *facts)
{
    *s = (struct scene){.p = p, .program = program};
    if (facts)
        s->facts = *facts;
    const double loader_us = gap_us(p, "loader");
    s->data_wait_us = s->facts.data_wait_us > 0 ? positive(s->facts.data_wait_us) : loader_us;
    s->upload_us = gap_us(p, "upload");
    s->imbalance_us = fmax(gap_us(p, "imbalance"), op_imbalance_us(p));
    s->dispatch_us = gap_us(p, p->gpu ? "idle" : "dispatch");
    s->host_us = gap_us(p, "host");
    s->step_us = s->shown_us = positive(p->step_us);
    if (fabs(s->data_wait_us - loader_us) <= WAIT_SHOWS * s->shown_us)
        s->data_wait_us = loader_us;            /* else one wait would have two lengths on a page, and the step two shares of it */
    else if (s->step_us > 0)
        s->step_us += positive(s->data_wait_us - loader_us);
    s->available_bytes = positive(s->facts.available_bytes > 0 ? s->facts.available_bytes : p->available_bytes);
    s->rows_scale = rows_scale(&s->facts);
    s->facts.eval_scale = s->facts.eval_scale > 0 ? s->facts.eval_scale : 1;
    s->eval_us = positive(s->facts.eval_us_per_step) * s->facts.eval_scale / s->rows_scale;
    double calls = 0;
    for (int i = 0; i < p->n_ops; i++)
        calls += scene_runs(s, i);
    if (s->facts.threads > 1 && !p->gpu)
        s->stalled_us = positive(s->dispatch_us - calls * CALL_MOST_US);
    s->dispatch_us -= s->stalled_us;
    s->call_us = calls > 0 ? s->dispatch_us / calls : 0;
}

const struct op *scene_op(const struct scene *s, int op) { return &s->program->ops[op]; }

const char *scene_op_name(const struct scene *s, int op)
{
    const struct op *o = scene_op(s, op);
    return o->n_out > 0 ? s->program->values[o->out[0]].name : op_info(o->kind)->name;
}

double scene_self_us(const struct scene *s, int op) { return positive(s->p->ops[op].self_us); }
double scene_floor_us(const struct scene *s, int op) { return positive(s->p->ops[op].floor_us); }

double scene_op_us(const struct scene *s, int op)
{
    return scene_self_us(s, op) + positive(s->p->ops[op].imbalance_us);
}

int scene_runs(const struct scene *s, int op)
{
    if (scene_op(s, op)->phase == PHASE_SETUP)
        return 0;
    const bool once = scene_op(s, op)->phase >= PHASE_COMMUNICATE || s->program->micro_batches < 1;
    return once ? 1 : s->program->micro_batches;
}

const char *scene_wait_words(const struct scene *s) { return s->step_us > s->shown_us ? " with the mean wait for data" : ""; }
const char *scene_time(const struct scene *s) { return arena_printf(&s->p->arena, "%s%s", text_us(&s->p->arena, s->step_us), scene_wait_words(s)); }
const char *scene_step(const struct scene *s) { return arena_printf(&s->p->arena, "%s step%s", text_us(&s->p->arena, s->step_us), scene_wait_words(s)); }

const char *scene_start_word(const struct scene *s) { return s->p->gpu ? "launch" : "dispatch"; }

double scene_calls_us(const struct scene *s, int op) { return s->call_us * scene_runs(s, op); }

double scene_compute_us(const struct scene *s, double flops)
{
    const double gflops = positive(peaks_products(&s->p->peaks, NUMBERS_F32).gflops);
    return gflops > 0 ? flops / gflops / 1e3 : 0;
}

double scene_traffic_us(const struct scene *s, double bytes)
{
    const double gb_per_s = positive(peaks_bandwidth(&s->p->peaks, bytes));
    return gb_per_s > 0 ? bytes / gb_per_s / 1e3 : 0;
}

void claim_op(const struct scene *s, struct claim *c, int op)
{
    if (!c->ops)
        c->ops = xcalloc((size_t)s->p->n_ops, sizeof *c->ops);
    if (c->ops[op])
        return;
    c->ops[op] = true;
    if (c->n_ops++ == 0 || op < c->first_op)
        c->first_op = op;
    c->involved_us += scene_op_us(s, op) + scene_calls_us(s, op);
}

const char *claim_where(const struct scene *s, const struct claim *c)
{
    const char *first = scene_op_name(s, c->first_op);
    if (c->n_ops == 1)
        return arena_printf(&s->p->arena, "%s", first);
    return arena_printf(&s->p->arena, "%s and %d more op%s", first, c->n_ops - 1, c->n_ops == 2 ? "" : "s");
}

const char *text_us(struct arena *a, double us)
{
    number_text n;
    return arena_printf(a, "%s", show_us(us, n));
}

const char *text_bytes(struct arena *a, double bytes)
{
    number_text n;
    return arena_printf(a, "%s", show_bytes(bytes, n));
}
