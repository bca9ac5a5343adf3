/* The listing of a program for people. */
#include <string.h>

#include "program/program.h"

static void print_values(const struct program *p, enum value_kind kind, FILE *to)
{
    char shape[64];
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == kind)
            fprintf(to, "  %-9s %%%-4d %-34s %-4s %s\n", value_kind_name(kind), i, p->values[i].name,
                    dtype_name(p->values[i].dtype), shape_text(p->values[i].shape, shape));
}

/* "0: 16 in 12" for every group: its tensors, and how many norms they have. */
static void print_members(const struct op_attrs *a, FILE *to)
{
    const char *before = " groups=[";
    for (int i = 0; i < a->n_members; i++) {
        const struct op_member *m = &a->members[i];
        int first = i, last_unit = -1, tensors = 0, units = 0;
        for (int k = 0; k < i; k++)
            first = a->members[k].group == m->group ? k : first;
        if (m->group < 0 || first < i)
            continue;
        for (int k = i; k < a->n_members; k++)
            if (a->members[k].group == m->group) {
                tensors++;
                units += a->members[k].unit > last_unit;
                last_unit = a->members[k].unit > last_unit ? a->members[k].unit : last_unit;
            }
        fprintf(to, "%s%d: %d in %d", before, (int)m->group, tensors, units);
        before = ", ";
    }
    fputs(*before == ',' ? "]" : "", to);
}

static void print_attrs(const struct op_attrs *a, FILE *to)
{
    const struct { const char *name; double value; } list[] = {
        {"heads", a->heads}, {"kv_heads", a->kv_heads}, {"rows", (double)a->rows}, {"cols", (double)a->cols},
        {"scale", a->scale}, {"eps", a->eps}, {"value", a->value}, {"prob", a->prob}, {"base", a->base},
        {"factor", a->stretch.factor}, {"low", a->stretch.low}, {"high", a->stretch.high}, {"context", a->stretch.context}, {"lr", a->lr},
        {"weight_decay", a->weight_decay}, {"beta1", a->beta1}, {"beta2", a->beta2}, {"max_norm", a->max_norm},
        {"warmup", (double)a->warmup}, {"total", (double)a->total}, {"copies", a->copies}, {"scaled", a->scaled},
        {"k", a->k}, {"every", a->every}, {"first", (double)a->first},
    };
    if (a->trans_a || a->trans_b)
        fprintf(to, " %c%c", a->trans_a ? 'T' : 'N', a->trans_b ? 'T' : 'N');
    if (a->inverse)
        fputs(" inverse", to);
    if (a->random)
        fputs(" random", to);
    if (a->masked)
        fputs(" masked", to);
    if (a->n_cuts)
        fprintf(to, " slices=%d", a->n_cuts - 1);
    print_members(a, to);
    if (a->round != ROUND_NO)
        fputs(a->round == ROUND_BF16 ? " bf16" : " tf32", to);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].value != 0)
            fprintf(to, " %s=%.6g", list[i].name, list[i].value);
}

static void print_op(const struct program *p, int at, FILE *to)
{
    const struct op *op = &p->ops[at];
    char shape[64];
    fprintf(to, "%5d ", at);
    if (op->layer == NO_LAYER)
        fputs("  - ", to);
    else
        fprintf(to, "%3d ", op->layer);
    fprintf(to, "%-16s", op_info(op->kind)->name);
    for (int i = 0; i < op->n_in && i < 8; i++)
        fprintf(to, " %%%d", op->in[i]);
    if (op->n_in > 8)
        fprintf(to, " ... (%d inputs)", op->n_in);
    print_attrs(&op->attrs, to);
    if (op->leave)
        fprintf(to, " held=%%%d[%d]", op->leave->held, op->leave->group);
    fputs(" ->", to);
    for (int i = 0; i < op->n_out; i++)
        fprintf(to, " %%%d", op->out[i]);
    const struct value *v = &p->values[op->out[0]];
    fprintf(to, "  %s %s%s%s  %.4g MFLOP %.4g MB  [%s]%s", v->name, dtype_is_narrow(v->dtype) ? dtype_name(v->dtype) : "",
            dtype_is_narrow(v->dtype) ? " " : "", shape_text(v->shape, shape), op_flops(p, op) / 1e6, op_bytes(p, op) / 1e6, op->made_by,
            op->last ? " last micro-batch" : op->timed ? " timed" : "");
    if (op->call)
        fprintf(to, " call %d", op->call);
    fputc('\n', to);
}

struct program_cost program_cost(const struct program *p, enum phase phase)
{
    struct program_cost c = {0};
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].phase == phase) {
            c.flops += op_flops(p, &p->ops[i]);
            c.bytes += op_bytes(p, &p->ops[i]);
            c.ops++;
        }
    return c;
}

int64_t program_parameters(const struct program *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            n += shape_count(p->values[i].shape);
    return n;
}

void program_print(const struct program *p, FILE *to)
{
    fprintf(to, "program %s: %d ops, %d values, %lld parameters%s\n", p->name, p->n_ops, p->n_values,
            (long long)program_parameters(p), p->fewer_meetings ? ", fewer meetings" : "");
    print_values(p, VALUE_INPUT, to);
    print_values(p, VALUE_PARAMETER, to);
    print_values(p, VALUE_STATE, to);
    print_values(p, VALUE_HOST, to);
    print_values(p, VALUE_TABLE, to);
    for (enum phase ph = 0; ph < PHASES; ph++) {
        const struct program_cost c = program_cost(p, ph);
        if (!c.ops)
            continue;
        fprintf(to, "%s: %d ops, %.4g GFLOP, %.4g MB\n", phase_name(ph), c.ops, c.flops / 1e9, c.bytes / 1e6);
        for (int i = 0; i < p->n_ops; i++)
            if (p->ops[i].phase == ph)
                print_op(p, i, to);
    }
}
