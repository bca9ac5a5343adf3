/* The rules of a program: every read follows a write, one writer per value, shapes as the op table says. */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

static enum status op_error(const struct program *p, int at, value_id v, const char *what, struct error *err)
{
    const struct op *op = &p->ops[at];
    return error_set(err, BAD_INPUT, "op %d %s (layer %d, made by %s): value '%s' %s", at, op_info(op->kind)->name,
                     op->layer, op->made_by, p->values[v].name, what);
}

static enum status check_exists(const struct program *p, int at, value_id v, struct error *err)
{
    const struct op *op = &p->ops[at];
    if (v >= 0 && v < p->n_values)
        return OK;
    return error_set(err, BAD_INPUT, "op %d %s (layer %d, made by %s): value %d does not exist; there are %d", at,
                     op_info(op->kind)->name, op->layer, op->made_by, (int)v, p->n_values);
}

static enum status shape_error(const struct program *p, int at, value_id v, struct shape gives, struct error *err)
{
    char is[64], should[64], what[192];
    snprintf(what, sizeof what, "is %s; the op gives %s", shape_text(p->values[v].shape, is), shape_text(gives, should));
    return op_error(p, at, v, what, err);
}

static enum status type_error(const struct program *p, int at, value_id v, struct error *err)
{
    char what[96];
    snprintf(what, sizeof what, "is %s, which does not fit the op and its other values", dtype_name(p->values[v].dtype));
    return op_error(p, at, v, what, err);
}

/* The executor runs phase after phase, so the list must be in that order too. */
static enum status check_phase(const struct program *p, int at, struct error *err)
{
    const struct op *op = &p->ops[at];
    if (at == 0 || op->phase >= p->ops[at - 1].phase)
        return OK;
    return error_set(err, BAD_INPUT, "op %d %s (layer %d, made by %s): its phase is %s, but it follows one of %s", at,
                     op_info(op->kind)->name, op->layer, op->made_by, phase_name(op->phase),
                     phase_name(p->ops[at - 1].phase));
}

static bool is_update(const struct op *op, int i)
{
    return i < op_updated(op->kind, &op->attrs) && op->out[i] == op->in[i];
}

static enum status check_inputs(const struct program *p, int at, const bool *written, struct error *err)
{
    const struct op *op = &p->ops[at];
    const struct op_info *info = op_info(op->kind);
    const int outputs = op_outputs(op->kind, &op->attrs);
    if (op->n_in < info->min_in || op->n_in > info->max_in || op->n_out != outputs)
        return error_set(err, BAD_INPUT, "op %d %s has %d inputs and %d outputs; it takes %d to %d and gives %d", at,
                         info->name, op->n_in, op->n_out, info->min_in, info->max_in, outputs);
    for (int i = 0; i < op->n_in; i++) {
        const value_id v = op->in[i];
        if (check_exists(p, at, v, err))
            return BAD_INPUT;
        if (!written[v])
            return op_error(p, at, v, "is read before it is written", err);
        if (op->phase == PHASE_SETUP && p->values[v].kind != VALUE_TABLE && p->values[v].kind != VALUE_PARAMETER)
            return op_error(p, at, v, "is read by the setup, which has only tables and parameters", err);
    }
    return OK;
}

static enum status check_leave(const struct program *p, int at, const bool *written, struct error *err)
{
    const struct op_leave *l = p->ops[at].leave;
    if (!l)
        return OK;
    if (check_exists(p, at, l->held, err))
        return BAD_INPUT;
    if (!written[l->held])
        return op_error(p, at, l->held, "says whether it may be left out, and is not written before it", err);
    if (p->values[l->held].dtype != F32 || l->group < 0 || l->group >= shape_count(p->values[l->held].shape))
        return op_error(p, at, l->held, "says whether it may be left out, and has no number for its group", err);
    return OK;
}

static enum status check_outputs(const struct program *p, int at, bool *written, struct shape *shapes, struct error *err)
{
    const struct op *op = &p->ops[at];
    struct error why;
    if (op_info(op->kind)->shapes(p, op, shapes, &why))
        return error_set(err, BAD_INPUT, "op %d (layer %d, made by %s): %s", at, op->layer, op->made_by, why.text);
    for (int i = 0; i < op->n_out; i++)
        if (check_exists(p, at, op->out[i], err))
            return BAD_INPUT;
    if (op_mistyped_value(p, op) != NO_VALUE)
        return type_error(p, at, op_mistyped_value(p, op), err);
    for (int i = 0; i < op->n_out; i++) {
        const value_id v = op->out[i];
        if (is_update(op, i)) {
            if (!value_is_persistent(&p->values[v]) || p->values[v].kind == VALUE_INPUT || p->values[v].kind == VALUE_HOST)
                return op_error(p, at, v, "is updated in place but does not persist", err);
            continue;
        }
        if ((p->values[v].kind == VALUE_TABLE) != (op->phase == PHASE_SETUP))
            return op_error(p, at, v, op->phase == PHASE_SETUP ? "is written by the setup but is no table"
                                                               : "is a table; only the setup writes one whole", err);
        if (written[v] && p->values[v].kind != VALUE_HOST)
            return op_error(p, at, v, "is written twice", err);
        if (!shape_equal(p->values[v].shape, shapes[i]))
            return shape_error(p, at, v, shapes[i], err);
        written[v] = true;
    }
    return OK;
}

static bool has_value(const value_id *list, int n, value_id v)
{
    for (int i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

/* Ops of one call run at the same time. */
static enum status check_call(const struct program *p, int at, struct error *err)
{
    const struct op *op = &p->ops[at];
    for (int i = program_call(p, at).first; i < at; i++) {
        const struct op *other = &p->ops[i];
        if (other->kind != op->kind)
            return error_set(err, BAD_INPUT, "op %d %s (made by %s) is in one call with op %d, which is %s", at, op_info(op->kind)->name, op->made_by, i,
                             op_info(other->kind)->name);
        for (int k = 0; k < other->n_out; k++)
            if (has_value(op->in, op->n_in, other->out[k]) || has_value(op->out, op->n_out, other->out[k]))
                return op_error(p, at, other->out[k], "is written by another op of the same call", err);
    }
    return OK;
}

static enum status check_values(const struct program *p, bool *written, struct error *err)
{
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        for (int d = 0; d < v->shape.rank; d++)
            if (v->shape.dim[d] < 1)
                return error_set(err, BAD_INPUT, "value '%s': dimension %d is %lld; it must be at least 1", v->name, d,
                                 (long long)v->shape.dim[d]);
        written[i] = value_is_persistent(v) && v->kind != VALUE_HOST;
    }
    for (int i = 0; i < p->n_ops && p->ops[i].phase == PHASE_SETUP; i++)
        for (int k = op_updated(p->ops[i].kind, &p->ops[i].attrs); k < p->ops[i].n_out; k++)
            if (p->ops[i].out[k] >= 0 && p->ops[i].out[k] < p->n_values)
                written[p->ops[i].out[k]] = false;      /* by the setup; a table that it leaves alone is zero */
    return OK;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Checkpoints and sharing go by name, so the names of values that persist are unique. */
static enum status check_names(const struct program *p, struct error *err)
{
    const char **names = xcalloc((size_t)p->n_values, sizeof *names);
    enum status st = OK;
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (value_is_persistent(&p->values[i]))
            names[n++] = p->values[i].name;
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 1; i < n && st == OK; i++)
        if (!strcmp(names[i - 1], names[i]))
            st = error_set(err, BAD_INPUT, "two values that persist are named '%s'", names[i]);
    free(names);
    return st;
}

/* Room for the shapes of any op. */
static size_t most_outputs(const struct program *p)
{
    int most = OP_MAX_OUT;
    for (int i = 0; i < p->n_ops; i++)
        most = p->ops[i].n_out > most ? p->ops[i].n_out : most;
    return (size_t)most;
}

enum status program_validate(const struct program *p, struct error *err)
{
    if (p->error.status)
        return error_set(err, p->error.status, "program %s: %s", p->name, p->error.text);
    bool *written = xcalloc((size_t)p->n_values, sizeof *written);
    struct shape *shapes = xcalloc(most_outputs(p), sizeof *shapes);
    enum status st = check_values(p, written, err);
    for (int i = 0; i < p->n_ops && st == OK; i++) {
        st = check_phase(p, i, err);
        if (st == OK)
            st = check_inputs(p, i, written, err);
        if (st == OK)
            st = check_leave(p, i, written, err);
        if (st == OK)
            st = check_outputs(p, i, written, shapes, err);
        if (st == OK && p->ops[i].call)
            st = check_call(p, i, err);
    }
    if (st == OK)
        st = check_names(p, err);
    free(shapes);
    free(written);
    return st;
}
