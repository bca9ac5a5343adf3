/* Which groups of parameters a step updates: a score for every group from the squares of its gradients, the k highest, and a mask that
 * AdamW reads. Emitted as people write it first: a score and a read by the host for every group; fused-optimizer and async-metrics
 * take them away. Counts of updates and the last step of every group are states, "k1.n" and "k1.last". */
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "passes/passes.h"
#include "program/rewrite.h"

/* Parameters by group, in their order, with the unit that each counts in. */
struct groups {
    int n, members;                 /* groups, parameters in them */
    int *start;                     /* of group g in `parameter`; n + 1 entries */
    value_id *parameter;
    int32_t *unit;                  /* per parameter in the list */
};

static bool is_member(const struct value *v) { return v->kind == VALUE_PARAMETER && v->group >= 0; }

static void count_groups(const struct program *p, struct groups *g)
{
    for (int i = 0; i < p->n_values; i++)
        if (is_member(&p->values[i])) {
            g->n = p->values[i].group >= g->n ? p->values[i].group + 1 : g->n;
            g->members++;
        }
}

/* With one norm for a whole group all its members are of one unit. */
static void number_units(const struct program *p, struct groups *g, bool sum)
{
    int32_t *unit_of = xcalloc((size_t)p->n_values, sizeof *unit_of);       /* of the first parameter of a unit: its number + 1 */
    for (int j = 0; j < g->n; j++) {
        int32_t units = 0;
        for (int i = g->start[j]; i < g->start[j + 1] && sum; i++) {
            int32_t *unit = &unit_of[p->values[g->parameter[i]].unit];
            *unit = *unit ? *unit : ++units;
            g->unit[i] = *unit - 1;
        }
    }
    free(unit_of);
}

static struct groups find_groups(const struct program *p, bool sum)
{
    struct groups g = {0};
    count_groups(p, &g);
    g.start = xcalloc((size_t)g.n + 2, sizeof *g.start);
    g.parameter = xcalloc((size_t)g.members + 1, sizeof *g.parameter);
    g.unit = xcalloc((size_t)g.members + 1, sizeof *g.unit);
    for (int i = 0; i < p->n_values; i++)
        if (is_member(&p->values[i]))
            g.start[p->values[i].group + 2]++;
    for (int j = 2; j < g.n + 2; j++)
        g.start[j] += g.start[j - 1];
    for (int i = 0; i < p->n_values; i++)
        if (is_member(&p->values[i]))
            g.parameter[g.start[p->values[i].group + 1]++] = i;
    number_units(p, &g, sum);
    return g;
}

static void release_groups(struct groups *g)
{
    free(g->start);
    free(g->parameter);
    free(g->unit);
}

static value_id add_state(struct program *p, const char *name, int groups)
{
    return program_add_value(p, name, VALUE_STATE, I32, shape_of(1, (int64_t)groups));
}

/* squares[v]: the sum of squares of parameter v's gradient, as the clip before has it, whose parts are in the order of parameters. */
static value_id *find_squares(const struct program *p)
{
    const struct op *clip = &p->ops[p->n_ops - 1];
    value_id *squares = xcalloc((size_t)p->n_values, sizeof *squares);
    for (int i = 0, at = 1; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            squares[i] = clip->in[at++];
    return squares;
}

/* Where ranks divide the optimizer, one op has the squares of all. */
static void leave_out_blocks(struct program *p, value_id held)
{
    int at = p->n_ops - 1;
    while (at > 0 && p->ops[at].kind != OP_SQUARE_BLOCKS)
        at--;
    struct op *op = &p->ops[at];
    value_id *in = arena_alloc(&p->arena, (size_t)(op->n_in + 1) * sizeof *in);
    memcpy(in, op->in, (size_t)op->n_in * sizeof *in);
    in[op->n_in] = held;
    struct op_member *members = arena_copy(&p->arena, op->attrs.members, (size_t)op->n_in * sizeof *members);
    for (int v = 0, i = 0; v < p->n_values && i < op->n_in; v++)
        if (p->values[v].kind == VALUE_PARAMETER && p->values[v].grad == in[i])
            members[i++].group = p->values[v].group;
    op->in = in;
    op->n_in++;
    op->attrs.members = members;
    op->attrs.masked = true;
}

/* Groups that a kept selection leaves out have no part in the norm: their gradients need not be there. */
static value_id leave_out_of_norm(struct program *p, const struct selection *s, value_id last)
{
    const int parts = p->ops[p->n_ops - 1].n_in - 1;
    const value_id in[] = {last, p->step};
    int first = 0;                          /* op of a step */
    while (p->ops[first].phase == PHASE_SETUP)
        first++;
    if (program_insert_op(p, first, OP_HELD, (struct op_attrs){.every = s->every}, "k1.held", 2, in) < 0)
        return NO_VALUE;
    const value_id held = p->ops[first].out[0];
    if (p->n_buckets) {
        leave_out_blocks(p, held);
        return held;
    }
    int at = p->n_ops - 1 - parts;          /* the op of the first parameter */
    for (int i = 0; i < p->n_values; i++) {
        if (p->values[i].kind != VALUE_PARAMETER)
            continue;
        struct op *op = &p->ops[at++];
        const value_id both[] = {op->in[0], held};
        const struct op_member member = {p->values[i].group, 0};
        op->in = arena_copy(&p->arena, both, sizeof both);
        op->n_in = 2;
        op->attrs.masked = true;
        op->attrs.n_members = 1;
        op->attrs.members = arena_copy(&p->arena, &member, sizeof member);
    }
    return held;
}

/* Who writes a value, and who adds to a sum over micro-batches. */
static int *find_writers(const struct program *p)
{
    int *writer = xcalloc((size_t)p->n_values, sizeof *writer);
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; k < p->ops[i].n_out; k++)
            if (p->ops[i].kind != OP_ZERO)
                writer[p->ops[i].out[k]] = i;
    return writer;
}

/* The op that makes a weight's gradient alone, a product or a sum over rows, need not run where its group is left out; nor need the ops
 * that sum it up over micro-batches. */
static void leave_out_gradients(struct program *p, const struct selection *s, const struct groups *g, value_id held)
{
    int *writer = find_writers(p);
    const double chosen = (double)s->k / g->n, share = (1 + (s->every - 1) * chosen) / s->every;
    for (int i = 0; i < g->members; i++) {
        const struct value *v = &p->values[g->parameter[i]];
        const struct op_leave leave = {held, v->group, share};
        struct op *op = v->grad == NO_VALUE ? NULL : &p->ops[writer[v->grad]];
        for (int k = 0; k < 3 && op; k++) {
            const bool sums = op->kind == OP_DIVIDE || op->kind == OP_ACCUMULATE;
            if (!sums && !(op->kind == OP_MATMUL && op->attrs.trans_a) && op->kind != OP_SUM_LEADING)
                break;
            op->leave = arena_copy(&p->arena, &leave, sizeof leave);
            if (!sums)
                break;
            op = &p->ops[writer[op->in[op->kind == OP_ACCUMULATE]]];
        }
    }
    free(writer);
}

/* The score of group j, and a read of it. */
static value_id add_score(struct program *p, const struct groups *g, int j, const value_id *squares, value_id factor)
{
    const int first = g->start[j], n = g->start[j + 1] - first;
    value_id *in = xcalloc((size_t)n + 1, sizeof *in);
    struct op_member *members = arena_alloc(&p->arena, (size_t)(n ? n : 1) * sizeof *members);
    in[0] = factor;
    for (int i = 0; i < n; i++) {
        in[1 + i] = squares[g->parameter[first + i]];
        members[i] = (struct op_member){0, g->unit[first + i]};
    }
    p->layer = j;
    const struct op_attrs attrs = {.parts = 1, .n_members = n, .members = members};
    const int at = program_add_op(p, OP_GROUP_SCORES, attrs, arena_printf(&p->arena, "k1.score.%d", j), n + 1, in);
    free(in);
    if (at < 0)
        return NO_VALUE;
    const value_id score = p->ops[at].out[0];
    program_emit(p, OP_HOST_READ, (struct op_attrs){0}, arena_printf(&p->arena, SCORE_READ, j), 1, score);
    return score;
}

static int add_top_k(struct program *p, const struct groups *g, const struct selection *s, const value_id *squares, value_id factor,
                     value_id n, value_id last)
{
    value_id *in = xcalloc((size_t)g->n + 4, sizeof *in);
    in[0] = n;
    in[1] = last;
    in[2] = p->step;
    in[3] = factor;
    for (int j = 0; j < g->n; j++)
        in[4 + j] = add_score(p, g, j, squares, factor);
    p->layer = NO_LAYER;
    const struct op_attrs attrs = {.k = s->k, .every = s->every, .random = s->random, .seed = s->seed, .stream = rng_stream_of("k1.select")};
    const int at = program_add_op(p, OP_TOP_K, attrs, "k1.mask", 4 + g->n, in);
    free(in);
    return at;
}

enum status pass_select(struct program *p, const struct selection *s, value_id factor, struct selected *out, struct error *err)
{
    p->made_by = "select";
    p->phase = PHASE_OPTIMIZE;
    program_scope(p, NO_LAYER, "%s", "");
    struct groups g = find_groups(p, s->sum);
    if (s->k < 1 || s->k > g.n || s->every < 1)
        error_set(&p->error, BAD_INPUT, "%d of %d groups cannot be selected", s->k, g.n);
    const value_id n = add_state(p, K1_COUNTS, g.n), last = add_state(p, K1_LAST, g.n);
    value_id *squares = find_squares(p);
    p->step = program_add_value(p, "step", VALUE_STATE, I32, shape_of(0));
    const value_id held = s->every > 1 && !p->error.status ? leave_out_of_norm(p, s, last) : NO_VALUE;
    if (held != NO_VALUE)
        leave_out_gradients(p, s, &g, held);
    program_emit(p, OP_ADVANCE, (struct op_attrs){0}, "step", 1, p->step);
    const int at = add_top_k(p, &g, s, squares, factor, n, last);
    if (at >= 0)
        *out = (struct selected){.mask = p->ops[at].out[2], .n = n, .k = s->k};
    free(squares);
    release_groups(&g);
    return p->error.status ? error_set(err, p->error.status, "select: %s", p->error.text) : OK;
}
