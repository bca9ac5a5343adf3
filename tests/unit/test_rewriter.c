/* Rewriting with an index: after any changes the index says what sweeps over the list say, and the list is what the same changes
 * one by one make of it. Values by name, too. */
#include "core/rng.h"
#include "program/rewrite.h"
#include "program/rewriter.h"
#include "support/models.h"
#include "support/optimized.h"

static uint64_t draws;
static int below(int n) { return (int)rng_below(5, 1, draws++, (uint64_t)n); }

static const struct op_attrs none;

static struct program *chain(int n)
{
    struct program *p = program_new("chain");
    value_id v = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(1, (int64_t)4));
    p->tokens = v;
    for (int i = 0; i < n; i++)
        v = i % 3 ? program_emit(p, OP_GELU, none, "y", 1, v) : program_emit(p, OP_MUL, none, "y", 2, v, v);
    p->loss = v;
    return p;
}

/* The op of the list that has this number while the rewriter is open: ops are told apart by their first output. */
static int position(const struct program *p, value_id out) { return program_writer(p, out); }

static void check_index(const struct rewriter *r, const struct program *q)
{
    for (value_id v = 0; v < q->n_values; v++) {
        const int writer = rewriter_writer(r, v), at = program_writer(q, v);
        assert_int_equal(writer == NO_OP, at < 0);
        if (at >= 0)
            assert_int_equal(r->p->ops[writer].out[0], q->ops[at].out[0]);
        assert_int_equal(rewriter_readers(r, v), program_readers(q, v, NULL));
        int uses = 0;
        for (int u = rewriter_first_use(r, v); u != NO_USE; u = r->uses[u].next, uses++)
            assert_int_equal(r->p->ops[r->uses[u].op].in[r->uses[u].input], v);
        assert_int_equal(uses, rewriter_readers(r, v));
    }
    int n = 0;
    for (int i = r->first; i != NO_OP; i = rewriter_next(r, i), n++) {
        assert_int_equal(r->p->ops[i].out[0], q->ops[n].out[0]);
        assert_true(rewriter_prev(r, i) == NO_OP || rewriter_is_before(r, rewriter_prev(r, i), i));
        assert_memory_equal(r->p->ops[i].in, q->ops[n].in, (size_t)q->ops[n].n_in * sizeof(value_id));
    }
    assert_int_equal(n, q->n_ops);
}

/* One op in the place of another, in both programs. */
static void exchange(struct rewriter *r, struct program *q)
{
    const int at = below(q->n_ops), op = rewriter_writer(r, q->ops[at].out[0]);
    const value_id in = q->ops[at].in[0], old = q->ops[at].out[0];
    const int made = rewriter_insert(r, op, OP_SILU, none, "z", 1, &in);
    assert_int_equal(program_insert_op(q, at, OP_SILU, none, "z", 1, &in), at);
    rewriter_replace(r, old, r->p->ops[made].out[0]);
    program_replace_value(q, old, q->ops[at].out[0]);
    if (below(3)) {
        rewriter_remove(r, op);
        program_remove_op(q, position(q, old));
    }
    assert_int_equal(r->p->loss, q->loss);
}

static void test_same_as_one_by_one(void **state)
{
    (void)state;
    for (int c = 0; c < 40; c++) {
        struct program *p = chain(1 + below(30)), *q = chain(0);
        struct error err;
        program_free(q);
        q = chain(p->n_ops);
        struct rewriter r;
        rewriter_open(&r, p);
        for (int i = 0; i < 20; i++) {
            exchange(&r, q);
            check_index(&r, q);
        }
        rewriter_close(&r);
        assert_int_equal(p->n_ops, q->n_ops);
        for (int i = 0; i < p->n_ops; i++)
            assert_int_equal(p->ops[i].out[0], q->ops[i].out[0]);
        assert_ok(program_validate(p, &err), err);
        program_free(p);
        program_free(q);
    }
}

/* Ops may come in between the same two without end: their orders are made anew when there is no room left. */
static void test_many_in_one_place(void **state)
{
    (void)state;
    struct program *p = chain(3);
    const value_id x = p->tokens;
    struct rewriter r;
    rewriter_open(&r, p);
    const int last = r.last;
    int before = NO_OP;
    for (int i = 0; i < 200; i++) {
        const int made = rewriter_insert(&r, last, OP_GELU, none, "w", 1, &x);
        assert_true(rewriter_is_before(&r, made, last) && (before == NO_OP || rewriter_is_before(&r, before, made)));
        before = made;
    }
    rewriter_move(&r, last, r.first);
    rewriter_set_inputs(&r, before, 1, &p->ops[r.first].in[0]);
    assert_int_equal(r.first, last);
    rewriter_close(&r);
    assert_int_equal(p->n_ops, 203);
    program_free(p);
}

static void test_names(void **state)
{
    (void)state;
    struct program *p = program_new("names");
    char name[32];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "v%d", i % 400);            /* some twice: the first is found */
        program_add_value(p, name, VALUE_ACTIVATION, F32, shape_of(0));
        if (i % 50 == 0)
            assert_int_equal(program_find(p, name), i % 400);
    }
    assert_int_equal(program_find(p, "v399"), 399);
    program_rename(p, 7, "other");
    assert_int_equal(program_find(p, "other"), 7);
    assert_int_equal(program_find(p, "v7"), 407);
    program_keep_values(p, 100);
    assert_int_equal(program_find(p, "v399"), NO_VALUE);
    assert_int_equal(program_add_value(p, "v399", VALUE_ACTIVATION, F32, shape_of(0)), 100);
    assert_int_equal(program_find(p, "v399"), 100);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_one_by_one), cmocka_unit_test(test_many_in_one_place),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
