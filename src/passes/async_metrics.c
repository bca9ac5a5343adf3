/* async-metrics: loss, norm and learning rate of a step go into a ring on the device instead of to the host, which reads the
 * ring when it has something to show (passes.h: METRICS_KEPT). Nothing in a step waits for the host any more, and no step is
 * lost: the host finds every one of them in the ring, with the same bits. */
#include "passes/optimize.h"
#include "passes/passes.h"
#include "program/rewrite.h"

static const char *const reads[METRICS] = {[METRIC_LOSS] = "host.loss", [METRIC_NORM] = "host.norm", [METRIC_LR] = "host.lr"};

/* The op that reads this metric in every step, or -1. */
static int find_read(const struct program *p, enum metric m)
{
    const value_id v = program_find(p, reads[m]);
    const int at = v == NO_VALUE ? -1 : program_writer(p, v);
    return at >= 0 && p->ops[at].kind == OP_HOST_READ && p->ops[at].phase == PHASE_OPTIMIZE ? at : -1;
}

/* The host must not find a value that nothing writes any more. */
static void remove_read(struct program *p, enum metric m)
{
    const int at = find_read(p, m);
    const value_id v = p->ops[at].out[0];
    p->values[v].kind = VALUE_ACTIVATION;
    program_rename(p, v, arena_printf(&p->arena, "unused.%s", p->values[v].name));
    program_remove_op(p, at);
}

int pass_async_metrics(struct program *p)
{
    value_id in[2 + METRICS];
    int last = 0;
    if (p->step == NO_VALUE)
        return 0;
    for (int m = 0; m < METRICS; m++) {
        const int at = find_read(p, (enum metric)m);
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
    for (int m = 0; m < METRICS; m++)
        remove_read(p, (enum metric)m);
    return METRICS;
}
