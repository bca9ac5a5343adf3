/* async-metrics: loss, norm and learning rate of a step go into a ring on the device instead of to the host, which reads the
 * ring when it has something to show (passes.h: METRICS_KEPT). The scores and the mask of a selection have a ring of their own. Nothing in a step waits for the host any more, and no step is
 * lost: the host finds every one of them in the ring, with the same bits. */
#include <string.h>

#include "passes/optimize.h"
#include "passes/passes.h"
#include "program/rewrite.h"

static const char *const reads[METRICS] = {[METRIC_LOSS] = "host.loss", [METRIC_NORM] = "host.norm", [METRIC_LR] = "host.lr"};

/* The op that reads this in every step, or -1. */
static int find_read(const struct program *p, const char *name)
{
    const value_id v = program_find(p, name);
    const int at = v == NO_VALUE ? -1 : program_writer(p, v);
    return at >= 0 && p->ops[at].kind == OP_HOST_READ && p->ops[at].phase == PHASE_OPTIMIZE ? at : -1;
}

/* The host must not find a value that nothing writes any more. */
static void remove_read(struct program *p, int at)
{
    const value_id v = p->ops[at].out[0];
    p->values[v].kind = VALUE_ACTIVATION;
    program_rename(p, v, arena_printf(&p->arena, "unused.%s", p->values[v].name));
    program_remove_op(p, at);
}

/* The op that selects, or -1. */
static int find_choice(const struct program *p)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_TOP_K)
            return i;
    return -1;
}

static bool is_score_read(const struct program *p, const struct op *op)
{
    const int writer = op->kind == OP_HOST_READ ? program_writer(p, op->in[0]) : -1;
    return writer >= 0 && p->ops[writer].kind == OP_GROUP_SCORES;
}

/* In the place of op `at`. Returns how many reads went. */
static int keep_scores(struct program *p, int at)
{
    const int choice = find_choice(p), scores = choice < 0 ? 0 : p->ops[choice].n_in - 4;
    const int64_t groups = choice < 0 ? 0 : shape_count(p->values[p->ops[choice].in[0]].shape);
    int removed = 0;
    if (choice < 0)
        return 0;
    value_id *in = arena_alloc(&p->arena, (size_t)(scores + 3) * sizeof *in);
    in[0] = program_add_value(p, NODES_RING, VALUE_TABLE, F32, shape_of(2, (int64_t)METRICS_KEPT, 2 * groups));
    in[1] = p->step;
    memcpy(in + 2, p->ops[choice].in + 4, (size_t)scores * sizeof *in);
    in[2 + scores] = p->ops[choice].out[2];
    if (program_insert_op(p, at, OP_KEEP, (struct op_attrs){0}, "keep", 3 + scores, in) < 0)
        return 0;
    for (int i = p->n_ops - 1; i >= 0; i--)
        if (is_score_read(p, &p->ops[i])) {
            remove_read(p, i);
            removed++;
        }
    return removed;
}

int pass_async_metrics(struct program *p)
{
    value_id in[2 + METRICS];
    int last = 0;
    if (p->step == NO_VALUE)
        return 0;
    for (int m = 0; m < METRICS; m++) {
        const int at = find_read(p, reads[m]);
        if (at < 0)
            return 0;
        in[2 + m] = p->ops[at].in[0];
        last = at > last ? at : last;
    }
    const int layer = p->layer;
    program_scope(p, NO_LAYER, "%s", "");
    in[0] = program_add_value(p, METRICS_RING, VALUE_TABLE, F32, shape_of(2, (int64_t)METRICS_KEPT, (int64_t)METRICS));
    in[1] = p->step;
    p->layer = layer;
    if (program_insert_op(p, last, OP_KEEP, (struct op_attrs){0}, "keep", 2 + METRICS, in) < 0)
        return 0;
    const int scores = keep_scores(p, last);
    for (int m = 0; m < METRICS; m++)
        remove_read(p, find_read(p, reads[m]));
    return METRICS + scores;
}
