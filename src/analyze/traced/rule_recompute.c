/* recompute: the forward pass runs again inside backward to save memory that may not be needed. */
#include <math.h>
#include <string.h>

#include "analyze/traced/rules.h"

/* Hooks in Python pack and unpack every tensor that would be kept, in forward, again and in backward. Their time, in times
 * of the second forward on the host: measured 1.0 to 1.4 in four models. The reentrant form has none. */
static const double HOOKS = 1.1, NO_HOOKS = 0.1;
static const double CPU_HOOKS = 0.02;       /* where the host computes, too, they are next to nothing of it */

static int32_t node_around(const struct study *s, int32_t i)
{
    while (i >= 0 && study_task(s, i) != TASK_BACKWARD)
        i = s->v->parent[i];
    return i;
}

/* An op that records gradients inside a backward node runs forward a second time. The node's own function has its number. */
static bool is_again(const struct study *s, int32_t i)
{
    const struct event *e = view_event(s->v, i);
    if (e->kind != EVENT_HOST_OP || e->link < 0 || study_task(s, i) == TASK_BACKWARD || !study_has(s, i))
        return false;
    const int32_t node = node_around(s, s->v->parent[i]);
    return node >= 0 && view_event(s->v, node)->link != e->link && !strstr(view_name(s->v, i), "Backward");
}

struct block {                              /* one stretch of forward inside a node */
    int32_t node, holder;                   /* the holder is the call directly around the ops */
    int64_t end_ns;
    int ops;
};

static struct block block_at(const struct study *s, int32_t i)
{
    struct block b = {.node = node_around(s, i), .holder = s->v->parent[i], .end_ns = 0};
    for (int32_t k = i; k < s->v->end[b.node]; k++)
        if (is_again(s, k)) {
            b.ops++;
            if (event_end(view_event(s->v, k)) > b.end_ns)
                b.end_ns = event_end(view_event(s->v, k));
        }
    return b;
}

/* The part of a call's own time that lies behind the forward inside it. */
static double own_part_behind(const struct study *s, int32_t call, int64_t at_ns)
{
    const struct event *e = view_event(s->v, call);
    double own = (double)e->duration_ns, behind = (double)(event_end(e) - at_ns);
    for (int32_t k = call + 1; k < s->v->end[call]; k = s->v->end[k]) {
        const struct event *child = view_event(s->v, k);
        own -= (double)child->duration_ns;
        if (child->start_ns >= at_ns)
            behind -= (double)child->duration_ns;
    }
    return own > 0 ? fmin(fmax(behind / own, 0), 1) : 1;
}

static void charge_block(const struct study *s, struct charge *c, struct block b, double *device_ns, double *host_ns)
{
    for (int32_t k = b.holder + 1; k < s->v->end[b.holder]; k = s->v->end[k])
        if (view_event(s->v, k)->start_ns < b.end_ns) {
            charge_call(s, c, k, 0);
            *device_ns += study_device_ns(s, k);
        }
    *host_ns += (double)(b.end_ns - view_event(s->v, b.holder)->start_ns);
    for (int32_t call = b.holder; call >= b.node; call = s->v->parent[call])
        c->edit.host[call] = (uint8_t)lround(own_part_behind(s, call, b.end_ns) * KEEP_ALL);
}

bool trace_rule_recompute(struct study *s, struct charge *c)
{
    int blocks = 0, ops = 0;
    double device_ns = 0, host_ns = 0;
    int32_t example = -1;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (!is_again(s, i))
            continue;
        const struct block b = block_at(s, i);
        charge_block(s, c, b, &device_ns, &host_ns);
        blocks++;
        ops += b.ops;
        example = example < 0 ? i : example;
        i = s->v->end[b.node] - 1;
    }
    if (!blocks)
        return false;
    const double true_part = s->host_ns * s->replay->n_steps / (double)s->replay->span_ns;
    const bool reentrant = strstr(view_name(s->v, node_around(s, example)), "CheckpointFunction") != NULL;
    c->edit.added_ns = -(study_on_cpu(s) ? CPU_HOOKS : reentrant ? NO_HOOKS : HOOKS) * per_step(s, host_ns) * fmin(true_part, 1);
    c->doubt = 0.35;
    c->finding.where = study_where(s, example);
    c->finding.cause = "activations are dropped and computed again in backward; with memory to spare they could be kept";
    c->finding.evidence = study_text(s, "%s blocks and %.0f ops per step run forward again, %s of the %s per step",
                                     study_number(s, per_step(s, blocks)), per_step(s, ops),
                                     study_us(s, per_step(s, study_on_cpu(s) ? host_ns : device_ns)), study_on_cpu(s) ? "CPU, as recorded," : "device");
    return true;
}
