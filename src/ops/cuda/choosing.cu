/* Whether the products of an op are made by the kernel for small ones, and in how many pieces: by timing where ops ask for it, in
 * the program's own memory, else by rule. Choices are remembered as those of plans are (tuning.cu). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/device.cuh"
#include "ops/cuda/small.cuh"
#include "ops/cuda/timing.cuh"

static const double RULE_FLOPS = 6e8, TRIED_FLOPS = 6e9, HOPPER_FLOPS = 1e8;
enum { BLOCKS_WANTED = 132, BLOCKS_MOST = 2048 };

static bool has_clusters(const struct cuda_backend *b) { return b->about.major >= 9; }

int cuda_small_ways(const struct cuda_backend *b, const struct small_products *p, double flops)
{
    int ways = 1;
    if (flops > TRIED_FLOPS || !cuda_small_fits(p))
        return 0;
    while (has_clusters(b) && ways < SMALL_WAYS && cuda_small_steps(p) >= 1 << ways && cuda_small_tiles(p) << ways <= BLOCKS_MOST &&
           cuda_small_has_room(p, 1 << ways))
        ways++;
    return ways;
}

int cuda_small_by_rule(const struct cuda_backend *b, const struct small_products *p, double flops)
{
    const int ways = cuda_small_ways(b, p, flops);
    int way = 0;
    if (ways == 0 || flops > RULE_FLOPS)
        return -1;
    while (way + 1 < ways && cuda_small_tiles(p) << (way + 1) <= BLOCKS_WANTED && cuda_small_steps(p) >= 2 << (way + 1))
        way++;
    return way;
}

/* ---- ops of several products, or with something behind them: by plans, or by one kernel ---- */

enum { HOPPER_FIRST = SMALL_WAYS + 1, TOGETHER = HOPPER_FIRST + HOPPER_WAYS, VARIANTS };
static const char *const variants[VARIANTS + 1] = {
    "plans", "small", "small by 2", "small by 4", "small by 8", "small by 16", "small by 32", "small by 64", "hopper 64", "hopper 128",
    "hopper 192", "hopper 64 by 2", "hopper 128 by 2", "hopper 192 by 2", "hopper 64 by 4", "hopper 128 by 4", "hopper 192 by 4", "together", NULL};

static void use_variant(struct cuda_call *c, int variant)
{
    const int way = variant == TOGETHER ? -1 : variant - HOPPER_FIRST;
    c->at_once = variant == TOGETHER;
    if (c->at_once)
        variant = 0;
    c->width = way < 0 ? 0 : 64 * (1 + way % 3);
    c->pieces = way >= 0 ? 1 << way / 3 : variant ? 1 << (variant - 1) : 0;
}

/* Gradients that may be left out are made by a kernel that can leave them out, if that pays. */
static bool is_asked(const struct cuda_call *c, bool groups)
{
    const struct op *op = c->op;
    if (groups || c->merged)
        return groups && c->n_also;
    return op->kind == OP_PROJECT || op->kind == OP_PROJECT_GRAD || op->kind == OP_LINEAR_GELU ||
           (op->kind == OP_MATMUL && !c->beside && (op->n_in > 2 || op->leave));
}

/* Nodes of one level, that do the same. */
static bool is_row(const struct cuda_call *c) { return c->n_also && c->op->call && c->also[0]->op->call == c->op->call; }

static double flops_of(const struct cuda_call *c)
{
    double flops = op_flops(c->program, c->op);
    for (int i = 0; i < c->n_also; i++)
        flops += op_flops(c->also[i]->program, c->also[i]->op);
    return flops;
}

/* Which of them can be had. */
struct options { int variant[VARIANTS], n; };

static bool has_option(const struct options *o, int variant)
{
    int i = 0;
    while (i < o->n && o->variant[i] != variant)
        i++;
    return i < o->n;
}

/* In k, of that with the fewest: every piece of it needs one. */
static int64_t fewest_steps(const struct small_products *p)
{
    int64_t least = p->summed ? cuda_small_steps(p) * p->each / p->parts : cuda_small_steps(p);
    for (int i = 0; i < p->parts && !p->summed; i++)
        least = at_most(least, divide_up(p->part[i].k, 64));
    return least;
}

/* Of nodes of one level the program says that they are too small to fill a GPU one by one (pass group-levels): where one kernel can make them it
 * does. One after the other, as they could be timed, is not how they would run otherwise: that is side by side, in lanes. */
static struct options options_of(const struct cuda_backend *b, const struct cuda_call *c, const struct small_products *p)
{
    struct options o = {};
    const double flops = flops_of(c);
    const int small = c->n_also ? 0 : cuda_small_ways(b, p, flops);
    for (int i = 0; i <= small; i++)
        o.variant[o.n++] = i;
    if (!c->n_also && cuda_may_together(c))
        o.variant[o.n++] = TOGETHER;
    if (b->about.major == 9 && b->about.minor == 0 && flops > HOPPER_FLOPS && flops <= TRIED_FLOPS && cuda_hopper_fits(p)) {
        o.n = is_row(c) ? 0 : o.n;
        for (int way = 0; way < HOPPER_WAYS && fewest_steps(p) >= 1 << way / 3; way++)
            o.variant[o.n++] = HOPPER_FIRST + way;
    }
    return o;
}

/* What a way may take, in steps of a tile's width: blocks that the GPU does not have at once come later, and each has something to begin
 * and to end with, the more the more pieces are added up. */
static int64_t hopper_cost(const struct small_products *p, int width, int pieces)
{
    enum { FETCHED = 64, ENDS = 500, ADDING = 150 };
    int64_t steps = 0, most = 0;
    for (int i = 0; i < p->parts; i++) {
        steps += i < p->each ? divide_up(p->part[i].k, 64) : 0;
        most = at_least(most, divide_up(p->part[i].k, 64));
    }
    const int64_t rounds = divide_up(cuda_hopper_blocks(p, width) * pieces, BLOCKS_WANTED);
    return rounds * (divide_up(p->summed ? steps : most, pieces) * (FETCHED + width) + ENDS + (pieces - 1) * ADDING);
}

/* Several products at once that are too large for the kernel for small ones; -1: no. */
static int hopper_by_rule(const struct options *o, const struct small_products *p, bool large)
{
    int best = -1;
    int64_t least = 0;
    for (int i = HOPPER_FIRST; i < TOGETHER && p->parts > 1 && large && has_option(o, i); i++) {
        struct cuda_call c = {};
        use_variant(&c, i);
        const int64_t cost = hopper_cost(p, c.width, c.pieces);
        if (best < 0 || cost < least)
            best = i, least = cost;
    }
    return best;
}

static int variant_by_rule(const struct cuda_backend *b, const struct options *o, const struct cuda_call *c, const struct small_products *p)
{
    const int hopper = hopper_by_rule(o, p, is_row(c) || flops_of(c) > RULE_FLOPS);
    if (has_option(o, TOGETHER) && flops_of(c) > RULE_FLOPS)
        return TOGETHER;
    return hopper >= 0 ? hopper : c->n_also ? 0 : 1 + cuda_small_by_rule(b, p, flops_of(c));
}

struct job {
    char key[CHOICE_KEY_MOST];
    struct cuda_call *call;
    struct options options;
};

/* Into key + n, where there is room; returns what n is then, or would be. */
static int add_inputs(const struct cuda_call *c, char *key, int n)
{
    char shape[64];
    for (int i = 0; i < c->op->n_in && n < CHOICE_KEY_MOST; i++)
        n += snprintf(key + n, (size_t)(CHOICE_KEY_MOST - n), " %s %s", dtype_name(cuda_in(c, i)->dtype), shape_text(cuda_in(c, i)->shape, shape));
    return n;
}

/* "2 parts project NT bf16 (8, 128, 256) bf16 (512, 256) ... -> bf16, evenly apart", of a group with the inputs of all, or "3 nodes of 2 parts
 * ...", which are alike. False: it would be too long. */
static bool write_key(const struct cuda_backend *b, const struct cuda_call *c, char key[CHOICE_KEY_MOST])
{
    const struct op_attrs *a = &c->op->attrs;
    int n = cuda_write_machine(b, key);
    if (is_row(c))
        n += snprintf(key + n, (size_t)(CHOICE_KEY_MOST - n), "%d nodes of ", 1 + c->n_also);
    n += snprintf(key + n, (size_t)(CHOICE_KEY_MOST - n), "%d parts %s %c%c", c->n_also && !is_row(c) ? 1 + c->n_also : a->parts,
                  op_info(c->op->kind)->name, a->trans_a ? 'T' : 'N', a->trans_b ? 'T' : 'N');
    for (int i = 0; i < c->n_also && !is_row(c); i++)
        n = add_inputs(c->also[i], key, n);
    n = add_inputs(c, key, n);
    if (n < CHOICE_KEY_MOST)
        n += snprintf(key + n, (size_t)(CHOICE_KEY_MOST - n), " -> %s%s%s", dtype_name(cuda_out(c, 0)->dtype),
                      cuda_may_together(c) ? ", evenly apart" : "", c->op->leave ? ", may be left out" : "");
    return n < CHOICE_KEY_MOST;
}

static void time_job(struct stopwatch *w, struct job *j, struct choice *c)
{
    double us[VARIANTS] = {};
    struct cuda_call call = *j->call;
    const double needed = call.op->leave ? call.op->leave->share : 1;
    call.leave = NULL;              /* what says whether it is needed is not there yet */
    int best = read_ways(w, us, j->options.n, [&](int way) {
        use_variant(&call, j->options.variant[way]);
        cuda_matrix_launch(&call);
    });
    for (int i = 0; i < j->options.n && needed < 1; i++) {          /* a plan runs in any case */
        const bool plan = j->options.variant[i] == 0 && !(call.n_also && call.alone.pieces);
        us[i] *= plan || j->options.variant[i] == TOGETHER ? 1 : needed;
        best = us[i] < us[best] ? i : best;
    }
    if (!isfinite(us[best]) || us[best] <= 0)
        return;
    c->variant = j->options.variant[best];
    c->us = us[best];
    c->first_us = isfinite(us[0]) ? us[0] : us[best];
}

static void time_missing(struct cuda_backend *b, struct job *jobs, struct choice *choices, int n)
{
    struct stopwatch w;
    int known = 0;
    if (b->choices->remember(NULL, 0, NULL) != OK)
        return;
    if (open_stopwatch(&w, b->stream))
        for (int i = 0; i < n; i++) {
            if (choices[i].variant < 0)
                time_job(&w, &jobs[i], &choices[i]);
            known += choices[i].variant >= 0;
        }
    close_stopwatch(&w);
    if (known < n || b->choices->remember(choices, n, NULL) != OK)
        b->choices->recall(choices, n);         /* without the new ones */
}

/* ---- all of them ---- */

static int job_with_key(const struct job *jobs, int n, const char *key)
{
    int i = 0;
    while (i < n && strcmp(jobs[i].key, key) != 0)
        i++;
    return i;
}

/* Decides by rule, or adds a job: job_of[i] is that of calls[i], or -1. */
static int find_jobs(struct cuda_backend *b, struct cuda_call *calls, int n, bool groups, struct job *jobs, int *job_of)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        struct small_products p;
        job_of[i] = -1;
        if (!is_asked(&calls[i], groups) || !cuda_small_of(&p, &calls[i]))
            continue;
        const struct options options = options_of(b, &calls[i], &p);
        use_variant(&calls[i], variant_by_rule(b, &options, &calls[i], &p));
        if (options.n < 2 || !calls[i].op->timed || !b->choices || !write_key(b, &calls[i], jobs[found].key))
            continue;
        jobs[found].call = &calls[i];
        jobs[found].options = options;
        job_of[i] = job_with_key(jobs, found, jobs[found].key);
        found += job_of[i] == found;
    }
    return found;
}

static void choose(struct cuda_backend *b, struct job *jobs, struct choice *choices, int n)
{
    for (int i = 0; i < n; i++) {
        choices[i].key = jobs[i].key;
        choices[i].variants = variants;
    }
    if (n && b->choices->recall(choices, n) > 0)
        time_missing(b, jobs, choices, n);
}

/* Groups that are no faster: each does its own work again, as was chosen for it. */
static void dissolve_groups(struct cuda_call *calls, int n)
{
    for (int i = 0; i < n; i++) {
        struct cuda_call *c = &calls[i];
        if (!c->n_also || c->pieces)
            continue;
        cuda_dissolve_group(c);
        c->at_once = c->alone.at_once, c->pieces = c->alone.pieces, c->width = c->alone.width;
    }
}

void cuda_choose_small(struct cuda_backend *b, struct cuda_call *calls, int n, bool groups)
{
    struct job *jobs = (struct job *)calloc((size_t)n + 1, sizeof *jobs);
    struct choice *choices = (struct choice *)calloc((size_t)n + 1, sizeof *choices);
    int *job_of = (int *)calloc((size_t)n + 1, sizeof *job_of);
    if (jobs && choices && job_of) {
        choose(b, jobs, choices, find_jobs(b, calls, n, groups, jobs, job_of));
        for (int i = 0; i < n; i++) {
            const struct choice *c = job_of[i] < 0 ? NULL : &choices[job_of[i]];
            if (!c || c->variant < 0 || !has_option(&jobs[job_of[i]].options, c->variant))
                continue;
            use_variant(&calls[i], c->variant);
            calls[i].saves_us = c->first_us - c->us;
        }
    }
    if (groups)
        dissolve_groups(calls, n);
    free(jobs);
    free(choices);
    free(job_of);
}
