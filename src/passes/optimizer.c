/* The optimizer as ops: global norm and clipping, learning rate, one AdamW op per parameter. */
#include <stdlib.h>

#include "core/setup.h"
#include "passes/passes.h"

static enum status builder_status(const struct program *p, const char *pass, struct error *err)
{
    return p->error.status ? error_set(err, p->error.status, "%s: %s", pass, p->error.text) : OK;
}

static void begin(struct program *p, const char *pass)
{
    p->made_by = pass;
    p->phase = PHASE_OPTIMIZE;
    program_scope(p, NO_LAYER, "%s", "");
}

enum status pass_clip(struct program *p, float max_norm, value_id *factor, struct error *err)
{
    begin(p, "clip");
    const int n = p->n_values;
    value_id *parts = xcalloc((size_t)n + 1, sizeof *parts);
    int n_parts = 0;
    parts[n_parts++] = p->loss;
    if (p->n_buckets)
        n_parts += shard_norm(p, parts + 1);
    for (int i = 0; i < n && !p->n_buckets; i++) {
        if (p->values[i].kind != VALUE_PARAMETER)
            continue;
        p->layer = p->values[i].layer;
        const char *name = arena_printf(&p->arena, "squares.%s", p->values[i].name);
        parts[n_parts++] = program_emit(p, OP_SUM_SQUARES, (struct op_attrs){0}, name, 1, p->values[i].grad);
    }
    p->layer = NO_LAYER;
    const int at = program_add_op(p, OP_CLIP, (struct op_attrs){.max_norm = max_norm}, "norm", n_parts, parts);
    free(parts);
    if (at >= 0) {
        p->norm = p->ops[at].out[0];
        *factor = p->ops[at].out[1];
    }
    return builder_status(p, "clip", err);
}

/* Slices of a rank are there already. */
static value_id add_moment(struct program *p, char which, const char *name, struct shape shape)
{
    const char *text = arena_printf(&p->arena, "adam.%c.%s", which, name);
    return p->n_buckets ? program_find(p, text) : program_add_value(p, text, VALUE_STATE, F32, shape);
}

static void add_adamw(struct program *p, value_id param, const struct optimizer_settings *s, value_id lr, value_id factor,
                      const struct selected *selected)
{
    const char *name = p->values[param].name;
    const struct shape shape = p->values[param].shape;
    const bool decays = s->decay_all || p->values[param].role == ROLE_MATRIX;
    const bool masked = selected != NULL;
    const struct op_attrs attrs = {.beta1 = s->beta1, .beta2 = s->beta2, .eps = s->eps, .weight_decay = decays ? s->weight_decay : 0,
                                   .masked = masked, .k = masked ? selected->k : 0};
    const value_id m = add_moment(p, 'm', name, shape), v = add_moment(p, 'v', name, shape);
    const value_id in[] = {param, m, v, p->values[param].grad, lr, p->step, factor, masked ? selected->mask : NO_VALUE,
                           masked ? selected->n : NO_VALUE};
    p->layer = p->values[param].layer;
    program_add_op(p, OP_ADAMW, attrs, name, masked ? 9 : 7, in);
}

static void add_step_counter(struct program *p)
{
    if (p->step != NO_VALUE)
        return;                     /* of the selection */
    p->step = program_add_value(p, "step", VALUE_STATE, I32, shape_of(0));
    program_emit(p, OP_ADVANCE, (struct op_attrs){0}, "step", 1, p->step);
}

enum status pass_adamw(struct program *p, const struct optimizer_settings *s, value_id factor, const struct selected *selected,
                       struct error *err)
{
    begin(p, "adamw");
    const int n = p->n_values;
    const struct op_attrs schedule = {.schedule = s->schedule, .lr = s->lr, .min_lr = s->min_lr, .warmup = s->warmup,
                                      .total = s->total_steps};
    add_step_counter(p);
    const value_id lr = program_emit(p, OP_LR, schedule, "lr", 1, p->step);
    for (int i = 0; i < n; i++)
        if (p->values[i].kind == VALUE_PARAMETER && p->values[i].grad != NO_VALUE)
            add_adamw(p, i, s, lr, factor, selected);
    p->layer = NO_LAYER;
    if (p->n_buckets)
        shard_gather(p);
    return builder_status(p, "adamw", err);
}

enum status pass_read_metrics(struct program *p, struct error *err)
{
    begin(p, "read-metrics");
    const value_id lr = program_find(p, "lr");
    program_emit(p, OP_HOST_READ, (struct op_attrs){0}, "host.loss", 1, p->loss);
    if (p->norm != NO_VALUE)
        program_emit(p, OP_HOST_READ, (struct op_attrs){0}, "host.norm", 1, p->norm);
    if (lr != NO_VALUE)
        program_emit(p, OP_HOST_READ, (struct op_attrs){0}, "host.lr", 1, lr);
    return builder_status(p, "read-metrics", err);
}

enum status pass_training_step(struct program *p, const struct optimizer_settings *s, struct error *err)
{
    value_id factor = NO_VALUE;
    struct selected selected;
    enum status st = setup_check("autodiff", err);
    if (st == OK)
        st = pass_autodiff(p, err);
    if (st == OK)
        st = s->ranks.shards > 1 ? OK : pass_accumulate(p, s->accumulate, err);
    if (st == OK)
        st = pass_data_parallel(p, &s->ranks, err);
    if (st == OK)
        st = pass_clip(p, s->max_norm, &factor, err);
    if (st == OK && s->select.k)
        st = pass_select(p, &s->select, factor, &selected, err);
    if (st == OK)
        st = pass_adamw(p, s, factor, s->select.k ? &selected : NULL, err);
    if (st == OK)
        st = pass_read_metrics(p, err);
    if (st == OK)
        st = setup_check("optimizer", err);
    return st == OK ? program_validate(p, err) : st;
}
