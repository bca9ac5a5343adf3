/* What a program takes on a backend: counted as it is bound, or planned without binding it. */
#include "exec/exec_int.h"
#include "passes/passes.h"

void exec_count_value(struct exec_memory *m, const struct value *v)
{
    switch (v->kind) {
    case VALUE_PARAMETER: m->parameters += value_bytes(v); break;
    case VALUE_STATE: m->state += value_bytes(v); break;
    case VALUE_INPUT: case VALUE_HOST: case VALUE_TABLE: m->inputs += value_bytes(v); break;
    default: break;
    }
}

enum status exec_count_op(struct exec_memory *m, const struct program *p, const struct op *op, struct backend *b, struct error *err)
{
    size_t scratch = 0;
    const enum status st = b->scratch(b, &scratch, p, op, err);
    if (scratch > m->scratch)
        m->scratch = scratch;
    return st;
}

void exec_count_kept(struct exec_memory *m, const struct program *p, struct backend *b) { m->scratch += b->kept ? b->kept(b, p) : 0; }

void exec_count_workspace(struct exec_memory *m, const struct program *p, const struct memory_plan *plan)
{
    m->workspace = plan->workspace_bytes;
    m->naive_workspace = plan->naive_bytes;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_ACCUMULATE)
            m->sums += value_bytes(&p->values[p->ops[i].out[0]]);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && p->values[i].grad != NO_VALUE)
            m->gradients += value_bytes(&p->values[p->values[i].grad]);
}

enum status exec_plan(struct exec_memory *out, const struct program *p, struct backend *b, struct error *err)
{
    struct memory_plan plan;
    *out = (struct exec_memory){0};
    for (int i = 0; i < p->n_values; i++)
        if (value_is_persistent(&p->values[i]))
            exec_count_value(out, &p->values[i]);
    pass_memory_plan(p, &plan);
    exec_count_workspace(out, p, &plan);
    memory_plan_release(&plan);
    enum status st = OK;
    for (int i = 0; i < p->n_ops && st == OK; i++)
        st = exec_count_op(out, p, &p->ops[i], b, err);
    exec_count_kept(out, p, b);
    if (st == OK && b->beside)
        out->beside = b->beside(b, p);
    return st;
}

double exec_memory_bytes(const struct exec_memory *m)
{
    return (double)(m->parameters + m->state + m->inputs + m->workspace + m->scratch);
}
