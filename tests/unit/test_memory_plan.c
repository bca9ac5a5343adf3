/* The memory plan on real training steps: nothing that is alive is written over, reuse only where the op table allows it,
 * and a step computes to the last bit what it computes when every value has memory of its own. */
#include "support/models.h"
#include "support/plain.h"

enum { STEPS = 3 };

struct lifetime {
    int first, last;            /* ops */
};

/* Lifetimes found again, in the plainest way. */
static struct lifetime lifetime_of(const struct program *p, value_id v)
{
    struct lifetime l = {-1, -1};
    for (int i = 0; i < p->n_ops; i++) {
        for (int j = 0; j < p->ops[i].n_out; j++)
            if (p->ops[i].out[j] == v)
                l = (struct lifetime){i, i};
        for (int j = 0; j < p->ops[i].n_in; j++)
            if (p->ops[i].in[j] == v)
                l.last = i;
    }
    bool kept = (v == p->logits && p->step == NO_VALUE) || v == p->loss || v == p->count;
    for (int i = 0; i < p->n_values; i++)
        kept |= p->values[i].kind == VALUE_PARAMETER && p->values[i].grad == v;
    if (kept)
        l.last = p->n_ops;
    return l;
}

/* `later` is the first output of the op that reads `earlier` last, and may take its memory. */
static bool may_take(const struct program *p, value_id earlier, value_id later, int at)
{
    const struct op *op = &p->ops[at];
    for (int j = 0; j < op->n_in; j++)
        if (op->in[j] == earlier && op->out[0] == later && (op_info(op->kind)->reuse >> j & 1))
            return value_bytes(&p->values[earlier]) == value_bytes(&p->values[later]);
    return false;
}

static bool overlap(const struct program *p, const struct memory_plan *plan, value_id a, value_id b)
{
    return plan->offset[a] < plan->offset[b] + value_bytes(&p->values[b]) &&
           plan->offset[b] < plan->offset[a] + value_bytes(&p->values[a]);
}

static int check_pairs(const struct program *p, const struct memory_plan *plan, const struct lifetime *life)
{
    int reused = 0;
    for (int a = 0; a < p->n_values; a++)
        for (int b = 0; b < p->n_values; b++) {
            if (a == b || plan->offset[a] == SIZE_MAX || plan->offset[b] == SIZE_MAX || !overlap(p, plan, a, b))
                continue;
            if (life[a].first > life[b].first || life[a].last < life[b].first)
                continue;                           /* b is not born while a lives */
            if (life[a].last > life[b].first || !may_take(p, a, b, life[b].first) || plan->offset[a] != plan->offset[b])
                fail_msg("%s: '%s' (ops %d to %d) and '%s' (ops %d to %d) share memory", p->name, p->values[a].name,
                         life[a].first, life[a].last, p->values[b].name, life[b].first, life[b].last);
            reused++;
        }
    return reused;
}

/* Every pair of values; returns how often an op writes over its input. */
static int check_plan(const struct program *p)
{
    struct memory_plan plan;
    pass_memory_plan(p, &plan);
    struct lifetime *life = xcalloc((size_t)p->n_values, sizeof *life);
    size_t naive = 0;
    for (int v = 0; v < p->n_values; v++) {
        life[v] = lifetime_of(p, v);
        if (value_is_persistent(&p->values[v])) {
            assert_true(plan.offset[v] == SIZE_MAX);
            continue;
        }
        assert_true(plan.offset[v] % 64 == 0);
        assert_true(plan.offset[v] + value_bytes(&p->values[v]) <= plan.workspace_bytes);
        naive += (value_bytes(&p->values[v]) + 63) / 64 * 64;
    }
    const int reused = check_pairs(p, &plan, life);
    assert_int_equal(plan.naive_bytes, naive);
    assert_true(plan.workspace_bytes < plan.naive_bytes);
    free(life);
    memory_plan_release(&plan);
    return reused;
}

/* The models as they are, with dropout, and with accumulation. */
enum { FORMS = 3 };

static struct program *program_in_form(int model, int form)
{
    struct small_model m = small_models[model];
    struct optimizer_settings s = small_settings();
    m.config.dropout = form == 1 ? 0.2 : 0;
    s.accumulate = form == 2 ? 3 : 1;
    return small_training(m, &s);
}

static void test_nothing_alive_is_written_over(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++)
        for (int form = 0; form < FORMS; form++) {
            struct program *p = program_in_form(m, form);
            assert_true(check_plan(p) > 10);
            p->linger = 5;
            assert_true(check_plan(p) > 10);
            program_free(p);
        }
}

static void test_forward_only(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct program *p = small_forward(small_models[m], 1);
        assert_true(check_plan(p) > 0);
        program_free(p);
    }
}

/* Gradients stay readable after a program that ends with the backward. */
static void test_gradients_without_an_optimizer(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct program *p = small_forward(small_models[m], 1);
        struct error err;
        assert_ok(pass_autodiff(p, &err), err);
        check_plan(p);
        program_free(p);
    }
}

/* --- by hand ----------------------------------------------------------------------------------------------------- */

/* Products, each of the one before, which none of them may write over: memory comes back after two ops, or `linger` later. */
static void test_lingering(void **state)
{
    (void)state;
    enum { LINKS = 8 };
    const struct op_attrs none = {0};
    struct program *p = program_new("products");
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)8, (int64_t)8));
    value_id link[LINKS], before = x;
    for (int i = 0; i < LINKS; i++)
        before = link[i] = program_emit(p, OP_MATMUL, none, arena_printf(&p->arena, "link%d", i), 2, before, x);
    for (p->linger = 0; p->linger <= LINKS; p->linger++) {
        struct memory_plan plan;
        const int apart = 2 + p->linger;
        pass_memory_plan(p, &plan);
        for (int i = 0; i < LINKS; i++)
            for (int j = i + 1; j < LINKS; j++)
                assert_true(overlap(p, &plan, link[i], link[j]) == ((j - i) % apart == 0));
        assert_int_equal(plan.workspace_bytes, 256 * (apart < LINKS ? apart : LINKS));
        memory_plan_release(&plan);
    }
    program_free(p);
}

/* Squares, and sums over rows, may be summed up long before their op's turn where memory lingers: nothing else is where they go until then. */
static void test_squares_have_their_own(void **state)
{
    (void)state;
    const struct op_attrs none = {0};
    for (int form = 0; form < 4; form++) {
        const int linger = form % 2;
        struct memory_plan plan;
        struct program *p = program_new("squares");
        const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)4, (int64_t)4));
        const value_id a = program_emit(p, OP_MATMUL, none, "a", 2, x, x), b = program_emit(p, OP_MATMUL, none, "b", 2, a, x);
        const value_id c = program_emit(p, OP_MATMUL, none, "c", 2, b, x), d = program_emit(p, OP_MATMUL, none, "d", 2, c, x);
        const value_id row = program_add_value(p, "row", VALUE_INPUT, F32, shape_of(1, (int64_t)4));
        const value_id squares = form < 2 ? program_emit(p, OP_SUM_SQUARES, none, "squares", 1, d)
                                          : program_emit(p, OP_SUM_LEADING, none, "sums", 2, d, row);
        p->linger = linger;
        pass_memory_plan(p, &plan);
        assert_true((overlap(p, &plan, squares, a) || overlap(p, &plan, squares, b) || overlap(p, &plan, squares, c)) == !linger);
        assert_false(overlap(p, &plan, squares, d));
        memory_plan_release(&plan);
        program_free(p);
    }
}

/* What one op makes of one input lies part behind part where memory lingers, however long each of them lives. */
static void test_parts_in_one_piece(void **state)
{
    (void)state;
    const struct op_attrs none = {0};
    for (int linger = 0; linger <= 1; linger++) {
        struct memory_plan plan;
        struct program *p = program_new("parts");
        const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)4, (int64_t)4));
        const value_id early = program_emit(p, OP_MATMUL, none, "early", 2, x, x);
        const value_id in[] = {program_emit(p, OP_MATMUL, none, "a", 2, early, x), x, x, x};
        const int at = program_add_op(p, OP_PROJECT, (struct op_attrs){.parts = 3}, "parts", 4, in);
        const value_id *out = p->ops[at].out;
        program_emit(p, OP_MATMUL, none, "b", 2, out[0], early);
        program_emit(p, OP_MATMUL, none, "c", 2, out[2], out[1]);
        p->linger = linger;
        pass_memory_plan(p, &plan);
        for (int i = 1; i < 3; i++) {
            assert_false(overlap(p, &plan, out[i], out[0]) || overlap(p, &plan, out[i], early) || overlap(p, &plan, out[i], in[0]));
            assert_true(!linger || plan.offset[out[i]] == plan.offset[out[0]] + (size_t)i * 64);
        }
        memory_plan_release(&plan);
        program_free(p);
    }
}

/* x -> a -> b -> c: an in-place chain needs one buffer; a value that is read again later keeps its own. */
static void test_small_plans(void **state)
{
    (void)state;
    const struct op_attrs none = {0};
    struct program *p = program_new("chain");
    struct memory_plan plan;
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(1, (int64_t)100));
    const value_id a = program_emit(p, OP_GELU, none, "a", 1, x), b = program_emit(p, OP_GELU, none, "b", 1, a);
    const value_id c = program_emit(p, OP_GELU, none, "c", 1, b);
    pass_memory_plan(p, &plan);
    assert_true(plan.offset[a] == plan.offset[b] && plan.offset[b] == plan.offset[c]);
    assert_int_equal(plan.workspace_bytes, 448);        /* 400 rounded up */
    assert_int_equal(plan.naive_bytes, 3 * 448);
    memory_plan_release(&plan);

    program_emit(p, OP_MUL, none, "d", 2, a, c);        /* now a lives on, and its reader may not take it */
    pass_memory_plan(p, &plan);
    assert_true(plan.offset[a] != plan.offset[b] && plan.offset[b] == plan.offset[c]);
    assert_int_equal(plan.workspace_bytes, 2 * 448);
    memory_plan_release(&plan);
    program_free(p);
}

/* An op that reads one value twice does not write over it. */
static void test_value_read_twice(void **state)
{
    (void)state;
    const struct op_attrs none = {0};
    struct program *p = program_new("twice");
    struct memory_plan plan;
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(1, (int64_t)100));
    const value_id a = program_emit(p, OP_GELU, none, "a", 1, x), b = program_emit(p, OP_MUL, none, "b", 2, a, a);
    pass_memory_plan(p, &plan);
    assert_true(plan.offset[a] != plan.offset[b]);
    memory_plan_release(&plan);
    program_free(p);
}

/* An output that is larger or smaller than the input that dies takes other memory. */
static void test_other_sizes_are_not_reused(void **state)
{
    (void)state;
    const struct op_attrs none = {0};
    struct program *p = program_new("sizes");
    struct memory_plan plan;
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)4, (int64_t)8));
    const value_id a = program_emit(p, OP_GELU, none, "a", 1, x);
    const value_id s = program_emit(p, OP_SUM_SQUARES, none, "s", 1, a);
    pass_memory_plan(p, &plan);
    assert_false(overlap(p, &plan, a, s));
    memory_plan_release(&plan);
    program_free(p);
}

/* Threads cut values of one size alike: they follow each other in one place though there is a lower one. What a device runs in another order takes the lowest. */
static void test_one_size_in_one_place(void **state)
{
    (void)state;
    const struct op_attrs none = {0};
    struct program *p = program_new("places");
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)8, (int64_t)8));
    const value_id y = program_add_value(p, "y", VALUE_INPUT, F32, shape_of(2, (int64_t)8, (int64_t)16));
    const value_id z = program_add_value(p, "z", VALUE_INPUT, F32, shape_of(2, (int64_t)16, (int64_t)8));
    const value_id large = program_emit(p, OP_MATMUL, none, "large", 2, x, y);
    const value_id small = program_emit(p, OP_MATMUL, none, "small", 2, large, z);
    const value_id again = program_emit(p, OP_MATMUL, none, "again", 2, small, y);
    program_emit(p, OP_SUM_SQUARES, none, "squares", 1, again);
    const value_id next = program_emit(p, OP_MATMUL, none, "next", 2, x, x);
    const value_id narrow = program_add_value(p, "narrow", VALUE_INPUT, F32, shape_of(2, (int64_t)8, (int64_t)4));
    const value_id other = program_emit(p, OP_MATMUL, none, "other", 2, x, narrow);     /* the only one of its size */
    for (p->linger = 0; p->linger < 2; p->linger++) {
        struct memory_plan plan;
        pass_memory_plan(p, &plan);
        assert_true(overlap(p, &plan, next, small) == !p->linger);
        assert_int_equal(plan.offset[next] < plan.offset[small], p->linger);
        assert_true(p->linger || plan.offset[other] == 0);
        memory_plan_release(&plan);
    }
    program_free(p);
}

static size_t workspace(struct program *p, double limit)
{
    struct memory_plan plan;
    p->memory_limit = limit;
    pass_memory_plan(p, &plan);
    const size_t bytes = plan.workspace_bytes;
    memory_plan_release(&plan);
    return bytes;
}

/* That costs next to no memory, and none past a limit: with one that nothing keeps all lie as low as they can. */
static void test_one_place_costs_little(void **state)
{
    (void)state;
    int more = 0;
    for (int m = 0; m < SMALL_MODELS; m++)
        for (int form = 0; form < FORMS; form++) {
            struct program *p = program_in_form(m, form);
            const size_t lowest = workspace(p, 1), alike = workspace(p, 0);
            const double persistent = pass_planned_bytes(p) - (double)alike;
            assert_true(alike <= lowest + lowest / 128);
            assert_int_equal(workspace(p, persistent + (double)alike), alike);
            assert_int_equal(workspace(p, persistent + (double)(alike - 1)), lowest);
            more += alike > lowest;
            program_free(p);
        }
    assert_true(more > 0);
}

/* --- running ----------------------------------------------------------------------------------------------------- */

/* The executor and a plain run of the same program, from the same parameters. */
struct pair {
    struct exec *exec;
    struct plain plain;
};

static void copy_persistent(struct pair *x)
{
    const struct program *p = exec_program(x->exec);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER || p->values[i].kind == VALUE_STATE)
            exec_read(x->exec, i, x->plain.memory[i]);
}

static void write_both(struct pair *x, const struct small_batch *b)
{
    const struct program *p = exec_program(x->exec);
    write_batch(x->exec, b);
    plain_write(&x->plain, p->tokens, b->tokens);
    plain_write(&x->plain, p->targets, b->targets);
    if (p->segments != NO_VALUE)
        plain_write(&x->plain, p->segments, b->segments);
}

static void run_both(struct pair *x, enum phase first, enum phase last)
{
    exec_run(x->exec, first, last);
    plain_run(&x->plain, first, last);
}

static void assert_same_value(struct pair *x, value_id v)
{
    const struct value *value = &exec_program(x->exec)->values[v];
    void *host = read_value(x->exec, v);
    if (memcmp(host, x->plain.memory[v], value_bytes(value)))
        fail_msg("%s: '%s' differs from the run without a plan", exec_program(x->exec)->name, value->name);
    free(host);
}

static void assert_same(struct pair *x)
{
    const struct program *p = exec_program(x->exec);
    assert_same_value(x, p->loss);
    for (int i = 0; i < p->n_values; i++) {
        if (value_is_persistent(&p->values[i]))
            assert_same_value(x, i);
        if (p->values[i].kind == VALUE_PARAMETER)
            assert_same_value(x, p->values[i].grad);
    }
}

static void check_run(int model, int form, struct backend *b)
{
    struct program *p = program_in_form(model, form);
    struct pair x = {.exec = new_exec(p, b)};
    x.plain = plain_new(p, b);
    copy_persistent(&x);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int micro = 0; micro < p->micro_batches; micro++) {
            const struct small_batch batch = random_batch(&small_models[model], 10 * step + (uint64_t)micro);
            write_both(&x, &batch);
            run_both(&x, PHASE_DATA, PHASE_BACKWARD);
        }
        run_both(&x, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
        assert_same(&x);
    }
    assert_true(isfinite(read_named(x.exec, "host.loss")) && read_named(x.exec, "host.loss") > 1);
    plain_release(&x.plain);
    exec_free(x.exec);
}

static void test_plan_changes_no_bit(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct backend *b = new_backend(threads, false);
        for (int m = 0; m < SMALL_MODELS; m++)
            for (int form = 0; form < FORMS; form++)
                check_run(m, form, b);
        b->free(b);
    }
    struct backend *reference = new_backend(1, true);
    check_run(SMALL_LLAMA, 1, reference);
    reference->free(reference);
}

/* The same seed and number of threads give the same bits; other memory and timing do not matter. */
static void test_runs_repeat(void **state)
{
    (void)state;
    struct backend *b = new_backend(3, false);
    float *first = NULL;
    for (int run = 0; run < 3; run++) {
        struct exec *e = new_exec(program_in_form(SMALL_GPT, 1), b);
        const value_id w = program_find(exec_program(e), "blocks.1.dn.weight");
        for (uint64_t step = 0; step < STEPS; step++) {
            const struct small_batch batch = random_batch(&small_models[SMALL_GPT], step);
            write_batch(e, &batch);
            exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        }
        float *now = read_value(e, w);
        if (first)
            assert_memory_equal(first, now, value_bytes(&exec_program(e)->values[w]));
        free(first);
        first = now;
        exec_free(e);
    }
    free(first);
    b->free(b);
}

static void test_sizes_are_reported(void **state)
{
    (void)state;
    struct backend *b = new_backend(1, false);
    struct exec *e = new_exec(program_in_form(SMALL_GPT, 0), b);
    const struct exec_memory m = exec_memory(e);
    const size_t parameters = (size_t)program_parameters(exec_program(e)) * 4;
    assert_int_equal(m.parameters, parameters);
    assert_int_equal(m.gradients, parameters);
    assert_int_equal(m.state, 2 * parameters + 4);          /* two moments and the step */
    assert_int_equal(m.inputs, 2 * 30 * 4 + 3 * 4);         /* tokens and targets, three host scalars */
    assert_int_equal(m.sums, 0);
    assert_true(m.workspace > parameters && m.workspace < m.naive_workspace);
    exec_free(e);
    b->free(b);
}

/* With micro-batches: sums of gradients are gradients, not state of the optimizer; and what backward makes is a gradient also where it
 * is written over an activation that dies. */
static void test_classes(void **state)
{
    (void)state;
    struct optimizer_settings s = small_settings();
    s.accumulate = 3;
    struct program *p = small_training(small_models[SMALL_GPT], &s);
    struct memory_point *points = xcalloc((size_t)p->n_ops, sizeof *points);
    const double parameters = 4 * (double)program_parameters(p);
    pass_memory_timeline(p, points);
    for (int i = 0; i < p->n_ops; i++) {
        assert_near(points[i].state, 2 * parameters + 4, 0, "two moments and the step");
        assert_true(points[i].gradients >= parameters);
        assert_near(points[i].parameters, parameters, 0, "parameters");
    }
    free(points);
    program_free(p);

    /* x -> gelu -> y; backward: dx in the memory of x, which dies there, then its sum of squares. */
    p = program_new("reuse");
    const value_id t = program_add_parameter(p, "t", shape_of(2, (int64_t)8, (int64_t)16), ROLE_EMBEDDING, INIT_NORMAL, 0.02f);
    p->tokens = program_add_value(p, "tokens", VALUE_INPUT, I32, shape_of(2, (int64_t)4, (int64_t)4));
    const value_id x = program_emit(p, OP_EMBED, (struct op_attrs){0}, "x", 2, t, p->tokens);
    p->phase = PHASE_BACKWARD;
    const value_id dx = program_emit(p, OP_GELU_GRAD, (struct op_attrs){0}, "dx", 2, x, x);
    const value_id dz = program_emit(p, OP_MUL, (struct op_attrs){0}, "dz", 2, dx, x);
    program_emit(p, OP_SUM_SQUARES, (struct op_attrs){0}, "sum", 1, dz);
    struct memory_plan plan;
    pass_memory_plan(p, &plan);
    assert_true(plan.offset[dz] == plan.offset[dx]);            /* written over the newer of the two */
    memory_plan_release(&plan);
    struct memory_point few[4];
    pass_memory_timeline(p, few);
    assert_near(few[1].activations, 1024, 0, "x");
    assert_near(few[1].gradients, 1024, 0, "dx");
    assert_near(few[2].activations + few[2].gradients, 2048, 0, "both, one of them written over");
    assert_near(few[3].activations, 0, 0, "x is gone");
    assert_near(few[3].gradients, 1024 + 64, 0, "dz and its sum");
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_alive_is_written_over),
        cmocka_unit_test(test_forward_only),
        cmocka_unit_test(test_gradients_without_an_optimizer),
        cmocka_unit_test(test_lingering),
        cmocka_unit_test(test_squares_have_their_own),
        cmocka_unit_test(test_parts_in_one_piece),
        cmocka_unit_test(test_small_plans),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_value_read_twice),
        cmocka_unit_test(test_other_sizes_are_not_reused),
        cmocka_unit_test(test_one_size_in_one_place),
        cmocka_unit_test(test_one_place_costs_little),
        cmocka_unit_test(test_plan_changes_no_bit),
        cmocka_unit_test(test_runs_repeat),
        cmocka_unit_test(test_sizes_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
