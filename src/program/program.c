/* Building programs: values, ops, names. */
#include "program/program.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct program *program_new(const char *name)
{
    struct program *p = xcalloc(1, sizeof *p);
    p->name = arena_printf(&p->arena, "%s", name);
    p->tokens = p->targets = p->segments = p->positions = p->types = p->features = p->starts = p->logits = p->loss = p->count = p->step = p->norm = p->loss_scale = NO_VALUE;
    p->precision = (struct precision_goal){.round = ROUND_BF16};
    p->micro_batches = 1;
    p->phase = PHASE_FORWARD;
    p->layer = NO_LAYER;
    p->made_by = "model";
    p->scope = "";
    return p;
}

void program_free(struct program *p)
{
    if (!p)
        return;
    program_release_names(p);
    arena_release(&p->arena);
    free(p->values);
    free(p->ops);
    free(p);
}

void program_scope(struct program *p, int layer, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->scope = arena_printf(&p->arena, "%s", text);
    p->layer = layer;
}

static const char *scoped(struct program *p, const char *name)
{
    return arena_printf(&p->arena, *p->scope ? "%s.%s" : "%s%s", p->scope, name);
}

value_id program_add_value(struct program *p, const char *name, enum value_kind kind, enum dtype dtype,
                           struct shape shape)
{
    if (p->n_values == p->cap_values) {
        p->cap_values = p->cap_values ? 2 * p->cap_values : 64;
        p->values = xrealloc(p->values, (size_t)p->cap_values * sizeof *p->values);
    }
    p->values[p->n_values] = (struct value){
        .name = scoped(p, name), .kind = kind, .dtype = dtype, .shape = shape, .layer = p->layer, .grad = NO_VALUE};
    return p->n_values++;
}

value_id program_add_parameter(struct program *p, const char *name, struct shape shape, enum param_role role,
                               enum param_init init, float std)
{
    const value_id id = program_add_value(p, name, VALUE_PARAMETER, F32, shape);
    struct value *v = &p->values[id];
    v->role = role;
    v->init = init;
    v->init_std = std;
    v->group = p->layer;
    v->unit = id;
    return id;
}

static enum value_kind output_kind(const struct program *p, const struct op *op)
{
    if (op->kind == OP_HOST_READ)
        return VALUE_HOST;
    if (op->n_in == 0)
        return VALUE_CONSTANT;
    return p->phase == PHASE_BACKWARD || p->phase == PHASE_COMMUNICATE ? VALUE_GRADIENT : VALUE_ACTIVATION;
}

static bool inputs_exist(struct program *p, const struct op *op)
{
    const struct op_info *info = op_info(op->kind);
    if (op->n_in < info->min_in || op->n_in > info->max_in) {
        error_set(&p->error, BAD_INPUT, "op %s in %s has %d inputs; it takes %d to %d", info->name, p->scope, op->n_in,
                  info->min_in, info->max_in);
        return false;
    }
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i] < 0 || op->in[i] >= p->n_values) {
            error_set(&p->error, BAD_INPUT, "op %s in %s: input %d does not exist", info->name, p->scope, i);
            return false;
        }
    return true;
}

static struct op *append(struct program *p, struct op op)
{
    if (p->n_ops == p->cap_ops) {
        p->cap_ops = p->cap_ops ? 2 * p->cap_ops : 64;
        p->ops = xrealloc(p->ops, (size_t)p->cap_ops * sizeof *p->ops);
    }
    p->ops[p->n_ops] = op;
    return &p->ops[p->n_ops++];
}

/* Names of the outputs after the first: "x.1", "x.2". */
static value_id add_output(struct program *p, const struct op *op, const char *name, int i, struct shape shape)
{
    char text[192];
    if (i)
        snprintf(text, sizeof text, "%s.%d", name, i);
    return program_add_value(p, i ? text : name, output_kind(p, op), op_result_type(p, op, i), shape);
}

struct op_call program_call(const struct program *p, int i)
{
    struct op_call c = {i, i + 1};
    const int call = p->ops[i].call;
    while (call && c.first > 0 && p->ops[c.first - 1].call == call && p->ops[c.first - 1].phase == p->ops[i].phase)
        c.first--;
    while (call && c.end < p->n_ops && p->ops[c.end].call == call && p->ops[c.end].phase == p->ops[i].phase)
        c.end++;
    return c;
}

int program_add_op(struct program *p, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                   const value_id *in)
{
    if (p->error.status)
        return -1;
    const struct op_info *info = op_info(kind);
    struct op op = {.kind = kind, .phase = p->phase, .layer = p->layer, .made_by = p->made_by, .n_in = n_in,
                    .n_out = op_outputs(kind, &attrs), .attrs = attrs};
    const int updated = op_updated(kind, &attrs);
    op.in = arena_copy(&p->arena, in, (size_t)n_in * sizeof *in);
    op.out = arena_alloc(&p->arena, (size_t)op.n_out * sizeof *op.out);
    struct shape *shapes = arena_alloc(&p->arena, (size_t)(op.n_out > OP_MAX_OUT ? op.n_out : OP_MAX_OUT) * sizeof *shapes);
    if (!inputs_exist(p, &op) || info->shapes(p, &op, shapes, &p->error))
        return -1;
    for (int i = 0; i < op.n_out; i++)
        op.out[i] = i < updated ? op.in[i] : add_output(p, &op, name, i, shapes[i]);
    append(p, op);
    return p->n_ops - 1;
}

value_id program_emit(struct program *p, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in, ...)
{
    value_id in[8];
    assert(n_in <= 8);
    va_list args;
    va_start(args, n_in);
    for (int i = 0; i < n_in; i++)
        in[i] = va_arg(args, value_id);
    va_end(args);
    const int at = program_add_op(p, kind, attrs, name, n_in, in);
    return at < 0 ? NO_VALUE : p->ops[at].out[0];
}
