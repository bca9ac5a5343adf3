/* group-levels: the nodes of one level of a tree do the same, each with numbers of its own, and none of them waits for another. As a model is
 * emitted they come one after the other, op by op; here the same op of all of them comes in a row, and the row is one call (op->call): threads
 * divide the work of all nodes and meet once, and a GPU starts one kernel for several where it can. The ops stay what they are, and so do
 * their bits.
 *
 * What belongs together is found by depth: how many ops must run before one at least. In a tree whose nodes are alike those of one level have
 * their ops at the same depths; in a row of blocks no two have.
 *
 * Only small nodes gain. Where the op of one node fills a device by itself, and others run beside it as it is, there is little to save, and
 * steps were slower in this order: node by node, what an op wrote is more likely in a cache when the next one reads it, and memory is given on
 * sooner. So a level whose ops read or write more than p->group_most numbers at a time stays as it was. */
#include <stdlib.h>
#include <string.h>

#include "passes/optimize.h"
#include "passes/passes.h"
#include "program/program.h"

enum { NONE = -1 };

struct link { int op, next; };

struct sorter {
    struct program *p;
    int *depth;                     /* per op */
    int *level;                     /* per layer: the least depth of its forward */
    int64_t *largest;               /* per layer: numbers of the largest value that its ops make, or read of what was made */
    int *after;                     /* per op: what it must follow, the first in `links` */
    struct link *links;
    int n_links;
    int *mate;                      /* per op: the next of its row, NONE: it is the last */
    int *first;                     /* per op: the first of its row */
    bool *done;
    struct op *order;
    int n;
};

/* ---- what follows what ---- */

/* Of every value, while the list is walked: who wrote it last, and who has read it since. */
struct history { int *writer, *readers; };

static void follow(struct sorter *s, int op, int before)
{
    if (before == NONE || before == op)
        return;
    s->links[s->n_links] = (struct link){before, s->after[op]};
    s->after[op] = s->n_links++;
    if (s->depth[before] >= s->depth[op])
        s->depth[op] = s->depth[before] + 1;
}

static void read_value(struct sorter *s, struct history *h, int op, value_id v)
{
    follow(s, op, h->writer[v]);
    s->links[s->n_links] = (struct link){op, h->readers[v]};
    h->readers[v] = s->n_links++;
}

static void write_value(struct sorter *s, struct history *h, int op, value_id v)
{
    follow(s, op, h->writer[v]);
    for (int i = h->readers[v]; i != NONE; i = s->links[i].next)
        follow(s, op, s->links[i].op);
    h->writer[v] = op;
    h->readers[v] = NONE;
}

static int *all_none(int n)
{
    int *list = xcalloc((size_t)n + 1, sizeof *list);
    memset(list, 0xff, ((size_t)n + 1) * sizeof *list);
    return list;
}

/* A use is listed once as such, and once more for who writes the value next. */
static size_t most_links(const struct program *p)
{
    size_t n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += 3 * ((size_t)p->ops[i].n_in + 1) + (size_t)p->ops[i].n_out;
    return n;
}

static void find_order(struct sorter *s)
{
    struct history h = {all_none(s->p->n_values), all_none(s->p->n_values)};
    for (int i = 0; i < s->p->n_ops; i++) {
        const struct op *op = &s->p->ops[i];
        for (int k = 0; k < op->n_in; k++)
            read_value(s, &h, i, op->in[k]);
        if (op->leave)
            read_value(s, &h, i, op->leave->held);
        for (int k = 0; k < op->n_out; k++)
            write_value(s, &h, i, op->out[k]);
    }
    free(h.writer);
    free(h.readers);
}

/* ---- rows ---- */

static int count_layers(const struct program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n = p->ops[i].layer >= n ? p->ops[i].layer + 1 : n;
    return n;
}

/* Makes something of what a step has computed, and updates nothing in place. */
static bool may_join(const struct program *p, const struct op *op)
{
    bool computed = false;
    for (int i = 0; i < op->n_in; i++)
        computed |= !value_is_persistent(&p->values[op->in[i]]);
    if (op->kind == OP_REDUCE_START || op->kind == OP_REDUCE_WAIT)
        return false;                           /* ranks meet in the order of the list */
    return computed && op->layer != NO_LAYER && (op->phase == PHASE_FORWARD || op->phase == PHASE_BACKWARD) && op_updated(op->kind, &op->attrs) == 0 &&
           !op->last;
}

static int64_t largest_of(const struct program *p, const value_id *list, int n)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        const struct value *v = &p->values[list[i]];
        const int64_t count = value_is_persistent(v) ? 0 : shape_count(v->shape);
        most = count > most ? count : most;
    }
    return most;
}

static void find_levels(struct sorter *s)
{
    const int layers = count_layers(s->p);
    s->level = all_none(layers);
    s->largest = xcalloc((size_t)layers + 1, sizeof *s->largest);
    for (int i = 0; i < s->p->n_ops; i++) {
        const struct op *op = &s->p->ops[i];
        const int64_t in = largest_of(s->p, op->in, op->n_in), out = largest_of(s->p, op->out, op->n_out), most = in > out ? in : out;
        if (may_join(s->p, op) && most > s->largest[op->layer])
            s->largest[op->layer] = most;
        if (op->phase == PHASE_FORWARD && may_join(s->p, op) && (s->level[op->layer] == NONE || s->depth[i] < s->level[op->layer]))
            s->level[op->layer] = s->depth[i];
    }
}

static bool values_alike(const struct program *p, const value_id *a, const value_id *b, int n)
{
    bool alike = true;
    for (int i = 0; i < n && alike; i++)
        alike = p->values[a[i]].dtype == p->values[b[i]].dtype && shape_equal(p->values[a[i]].shape, p->values[b[i]].shape);
    return alike;
}

/* Dropout draws from a stream of its own in every node. */
static bool do_the_same(const struct program *p, const struct op *a, const struct op *b)
{
    struct op_attrs x = a->attrs, y = b->attrs;
    x.stream = y.stream = 0;
    return a->kind == b->kind && a->phase == b->phase && a->n_in == b->n_in && a->n_out == b->n_out && a->timed == b->timed && op_attrs_equal(&x, &y) &&
           values_alike(p, a->in, b->in, a->n_in) && values_alike(p, a->out, b->out, a->n_out);
}

/* Rows by depth: of each the first op, and those of one depth in a list. */
static void find_rows(struct sorter *s)
{
    const struct program *p = s->p;
    int *at_depth = all_none(p->n_ops), *other = all_none(p->n_ops), *last = all_none(p->n_ops);
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        s->first[i] = last[i] = i;
        if (!may_join(p, op))
            continue;
        int row = at_depth[s->depth[i]];
        while (row != NONE && !(s->level[p->ops[row].layer] == s->level[op->layer] && do_the_same(p, &p->ops[row], op)))
            row = other[row];
        if (row == NONE) {
            other[i] = at_depth[s->depth[i]];
            at_depth[s->depth[i]] = i;
            continue;
        }
        s->mate[last[row]] = i;
        s->first[i] = row;
        last[row] = i;
    }
    free(at_depth);
    free(other);
    free(last);
}

/* A row within one node is none: its products are a matter of other passes. */
static bool spans_nodes(const struct sorter *s, int row)
{
    for (int i = s->mate[row]; i != NONE; i = s->mate[i])
        if (s->p->ops[i].layer != s->p->ops[row].layer)
            return true;
    return false;
}

static bool is_small(const struct sorter *s, int row)
{
    bool small = s->p->group_most >= 0;
    for (int i = row; i != NONE && small && s->p->group_most; i = s->mate[i])
        small = s->largest[s->p->ops[i].layer] <= s->p->group_most;
    return small;
}

static int number_rows(struct sorter *s)
{
    int n = 0;
    for (int i = 0; i < s->p->n_ops; i++) {
        if (s->first[i] != i || s->mate[i] == NONE)
            continue;
        const bool whole = spans_nodes(s, i) && is_small(s, i);
        n += whole;
        for (int k = i, next; k != NONE; k = next) {
            next = s->mate[k];
            s->p->ops[k].call = whole ? n : 0;
            if (!whole) {
                s->first[k] = k;
                s->mate[k] = NONE;
            }
        }
    }
    return n;
}

/* ---- the new list ---- */

/* Puts the row of an op behind all that it must follow. What that is has a lower depth, so this ends; and it has not come yet only where
 * nodes are taken before their turn. */
static void put(struct sorter *s, int op)
{
    if (s->done[op])
        return;
    for (int i = s->first[op]; i != NONE; i = s->mate[i])
        for (int k = s->after[i]; k != NONE; k = s->links[k].next)
            put(s, s->links[k].op);
    for (int i = s->first[op]; i != NONE; i = s->mate[i]) {
        s->order[s->n++] = s->p->ops[i];
        s->done[i] = true;
    }
}

static void release(struct sorter *s)
{
    free(s->depth);
    free(s->level);
    free(s->largest);
    free(s->after);
    free(s->links);
    free(s->mate);
    free(s->first);
    free(s->done);
    free(s->order);
}

/* What does not fit in rows stays as it was. */
static int take_order(struct sorter *s, int rows)
{
    struct program *p = s->p;
    const size_t bytes = (size_t)p->n_ops * sizeof *p->ops;
    const bool fits = p->memory_limit <= 0 || pass_planned_bytes(p) <= p->memory_limit;
    struct op *was = xcalloc((size_t)p->n_ops + 1, sizeof *was);
    memcpy(was, p->ops, bytes);
    memcpy(p->ops, s->order, bytes);
    if (fits && p->memory_limit > 0 && pass_planned_bytes(p) > p->memory_limit) {
        memcpy(p->ops, was, bytes);
        for (int i = 0; i < p->n_ops; i++)
            p->ops[i].call = 0;
        rows = 0;
    }
    free(was);
    return rows;
}

int pass_group_levels(struct program *p)
{
    if (p->step == NO_VALUE)                    /* what is not a training step runs too rarely */
        return 0;
    struct sorter s = {.p = p, .depth = xcalloc((size_t)p->n_ops + 1, sizeof(int)), .after = all_none(p->n_ops), .mate = all_none(p->n_ops),
                       .first = all_none(p->n_ops), .links = xcalloc(most_links(p) + 1, sizeof(struct link)),
                       .done = xcalloc((size_t)p->n_ops + 1, sizeof(bool)), .order = xcalloc((size_t)p->n_ops + 1, sizeof(struct op))};
    find_order(&s);
    find_levels(&s);
    find_rows(&s);
    int rows = number_rows(&s);
    for (int i = 0; i < p->n_ops && rows; i++)
        put(&s, i);
    if (rows)
        rows = take_order(&s, rows);
    release(&s);
    return rows;
}
