/* Insertion, removal and substitution in the list of ops. */
#include "program/rewrite.h"

#include <string.h>

int program_writer(const struct program *p, value_id v)
{
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++)
            if (p->ops[i].out[k] == v)
                return i;
    return -1;
}

int *program_writers(const struct program *p)
{
    int *writers = xcalloc((size_t)p->n_values, sizeof *writers);
    for (int v = 0; v < p->n_values; v++)
        writers[v] = -1;
    for (int i = p->n_ops - 1; i >= 0; i--)             /* of several the first */
        for (int k = 0; k < p->ops[i].n_out; k++)
            writers[p->ops[i].out[k]] = i;
    return writers;
}

int program_readers(const struct program *p, value_id v, int *op)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_in; k++)
            if (p->ops[i].in[k] == v) {
                n++;
                if (op)
                    *op = i;
            }
    return n;
}

enum { ROOTS = 13 };

/* The values that the program itself names. */
static int roots(struct program *p, value_id **list)
{
    value_id *all[] = {&p->tokens, &p->targets, &p->segments, &p->positions, &p->types, &p->features, &p->starts, &p->logits, &p->loss, &p->count,
                       &p->step, &p->norm, &p->loss_scale};
    memcpy(list, all, sizeof all);
    return (int)(sizeof all / sizeof *all);
}

bool program_is_root(const struct program *p, value_id v)
{
    value_id *list[ROOTS];
    const int n = roots((struct program *)p, list);
    for (int i = 0; i < n; i++)
        if (*list[i] == v)
            return true;
    return false;
}

int program_insert_op(struct program *p, int at, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                      const value_id *in)
{
    const enum phase phase = p->phase;
    const int layer = p->layer;
    if (at < p->n_ops) {
        p->phase = p->ops[at].phase;
        p->layer = p->ops[at].layer;
    }
    const int last = program_add_op(p, kind, attrs, name, n_in, in);
    p->phase = phase;
    p->layer = layer;
    if (last < 0)
        return -1;
    const struct op op = p->ops[last];
    memmove(&p->ops[at + 1], &p->ops[at], (size_t)(last - at) * sizeof op);
    p->ops[at] = op;
    return at;
}

int program_insert_copy(struct program *p, int at, const struct op *op, const char *prefix, const value_id *in)
{
    const struct op old = *op;                  /* the list of ops may move */
    if (program_insert_op(p, at, old.kind, old.attrs, prefix, old.n_in, in) < 0)
        return -1;
    p->ops[at].timed = old.timed;
    for (int i = op_updated(old.kind, &old.attrs); i < old.n_out; i++) {
        const struct value *from = &p->values[old.out[i]];
        struct value *to = &p->values[p->ops[at].out[i]];
        program_rename(p, p->ops[at].out[i], arena_printf(&p->arena, "%s.%s", prefix, from->name));
        to->kind = from->kind;
        to->dtype = from->dtype;
        to->layer = from->layer;
    }
    return at;
}

void program_remove_op(struct program *p, int at)
{
    memmove(&p->ops[at], &p->ops[at + 1], (size_t)(p->n_ops - at - 1) * sizeof *p->ops);
    p->n_ops--;
}

void program_replace_value(struct program *p, value_id from, value_id to)
{
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_in; k++)
            if (p->ops[i].in[k] == from)
                p->ops[i].in[k] = to;
    program_replace_root(p, from, to);
}

void program_replace_root(struct program *p, value_id from, value_id to)
{
    value_id *list[ROOTS];
    const int n = roots(p, list);
    for (int i = 0; i < n; i++)
        if (*list[i] == from)
            *list[i] = to;
}
