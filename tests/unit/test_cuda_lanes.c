/* Lanes of a graph: ops that share memory keep their order through lanes and waits, others go side by side. Needs no GPU. */
#include "ops/cuda/lanes.h"
#include "support/optimized.h"

enum { VALUES = 48, OPS = 150 };

/* Ops over values of up to 64 floats, which begin anywhere in one memory; what is in it matters to nobody. */
struct list {
    struct program *p;
    float memory[2048];
    float *at[VALUES];
    struct bound_op ops[OPS];
    size_t scratch[OPS];
    int n;
};

static void list_init(struct list *l)
{
    *l = (struct list){.p = program_new("list")};
}

static value_id value(struct list *l, int at, int count)
{
    const value_id v = program_add_value(l->p, arena_printf(&l->p->arena, "v%d", l->p->n_values), VALUE_STATE, F32,
                                         shape_of(1, (int64_t)count));
    l->at[v] = l->memory + at;
    return v;
}

static struct op *some_op(struct list *l, enum op_kind kind, int n_in, int n_out)
{
    struct arena *memory = &l->p->arena;
    struct op *op = arena_alloc(memory, sizeof *op);
    *op = (struct op){.kind = kind, .n_in = n_in, .n_out = n_out, .in = arena_alloc(memory, (size_t)n_in * sizeof(value_id)),
                      .out = arena_alloc(memory, (size_t)n_out * sizeof(value_id))};
    return op;
}

static void bind(struct list *l, struct op *op)
{
    struct bound_op *b = &l->ops[l->n++];
    *b = (struct bound_op){l->p, op, arena_alloc(&l->p->arena, (size_t)op->n_in * sizeof(void *)),
                           arena_alloc(&l->p->arena, (size_t)op->n_out * sizeof(void *))};
    for (int i = 0; i < op->n_in; i++)
        b->in[i] = l->at[op->in[i]];
    for (int i = 0; i < op->n_out; i++)
        b->out[i] = l->at[op->out[i]];
}

/* to = a * b; returns its place in the list. */
static int mul(struct list *l, value_id a, value_id b, value_id to)
{
    struct op *op = some_op(l, OP_MUL, 2, 1);
    op->in[0] = a;
    op->in[1] = b;
    op->out[0] = to;
    bind(l, op);
    return l->n - 1;
}

static struct lane_plan planned(const struct list *l, int lanes)
{
    struct lane_plan plan;
    assert_true(lanes_plan(&plan, l->ops, l->scratch, l->n, lanes));
    return plan;
}

/* ---- what a plan promises ---- */

/* before[i][j]: j is done when i begins, by the order of their lane and the waits, and what follows from these. */
static bool (*find_before(const struct lane_plan *plan))[OPS]
{
    bool(*before)[OPS] = xcalloc(OPS, sizeof *before);
    int last[LANES_MOST] = {-1, -1, -1, -1};
    for (int k = 0; k < plan->n; k++) {
        const int i = plan->order[k];
        const struct lane_op *op = &plan->ops[i];
        assert_int_equal(op->after[op->lane], -1);
        for (int lane = 0; lane < LANES_MOST; lane++) {
            const int j = lane == op->lane ? last[lane] : op->after[lane];
            if (j < 0)
                continue;
            assert_true(lane == op->lane || plan->ops[j].awaited);
            before[i][j] = true;
            for (int m = 0; m < plan->n; m++)
                before[i][m] |= before[j][m];
        }
        last[op->lane] = i;
    }
    return before;
}

static bool touch(const struct bound_op *a, bool a_out, const struct bound_op *b, bool b_out)
{
    for (int i = 0; i < (a_out ? a->op->n_out : a->op->n_in); i++)
        for (int j = 0; j < (b_out ? b->op->n_out : b->op->n_in); j++) {
            const char *x = a_out ? a->out[i] : a->in[i], *y = b_out ? b->out[j] : b->in[j];
            const size_t nx = value_bytes(&a->program->values[a_out ? a->op->out[i] : a->op->in[i]]);
            const size_t ny = value_bytes(&b->program->values[b_out ? b->op->out[j] : b->op->in[j]]);
            if (x < y + ny && y < x + nx)
                return true;
        }
    return false;
}

static bool must_keep_order(const struct bound_op *a, const struct bound_op *b)
{
    return touch(a, true, b, true) || touch(a, true, b, false) || touch(a, false, b, true);
}

/* Every op has one place, in the order too; what shares memory keeps its order; scratch is there. Returns how many lanes have ops. */
static int check_plan(const struct bound_op *ops, const size_t *scratch, const struct lane_plan *plan)
{
    bool(*before)[OPS] = find_before(plan), seen[OPS] = {false};
    int used = 0;
    for (int k = 0; k < plan->n; k++) {
        const int i = plan->order[k];
        assert_true(i >= 0 && i < plan->n && !seen[i]);
        seen[i] = true;
        for (int j = 0; j < i; j++)
            if (must_keep_order(&ops[j], &ops[i]) && !before[i][j])
                fail_msg("op %d may begin before op %d is done, and they share memory", i, j);
        assert_true(plan->used[plan->ops[i].lane] && scratch[i] <= plan->scratch[plan->ops[i].lane]);
        assert_true(scratch[i] <= LANE_SCRATCH || plan->ops[i].lane == 0);
    }
    for (int lane = 0; lane < LANES_MOST; lane++)
        used += plan->used[lane];
    free(before);
    return used;
}

/* ---- small lists ---- */

static void test_hazards(void **state)
{
    (void)state;
    struct list l;
    list_init(&l);
    const value_id x = value(&l, 0, 16), a = value(&l, 16, 16), b = value(&l, 32, 16), c = value(&l, 48, 16), over_b = value(&l, 40, 4);
    mul(&l, x, x, a);
    mul(&l, a, x, b);                       /* reads what was written */
    mul(&l, x, x, over_b);                  /* writes in the middle of what was written */
    mul(&l, x, x, a);                       /* writes what is read */
    mul(&l, x, x, c);                       /* shares nothing */
    for (int lanes = 1; lanes <= LANES_MOST; lanes++) {
        struct lane_plan plan = planned(&l, lanes);
        bool(*before)[OPS] = find_before(&plan);
        check_plan(l.ops, l.scratch, &plan);
        assert_true(before[1][0] && before[2][1] && before[3][1]);
        if (lanes > 1)
            assert_true(!before[4][0] && !before[0][4]);
        free(before);
        lanes_release(&plan);
    }
    program_free(l.p);
}

/* A chain with one op beside every link: the chain is lane 0, in its order, and never waits. */
static void test_chain_goes_on(void **state)
{
    (void)state;
    enum { LINKS = 12 };
    struct list l;
    list_init(&l);
    value_id before = value(&l, 0, 16);
    int chain[LINKS], beside[LINKS];
    for (int i = 0; i < LINKS; i++) {
        const value_id next = value(&l, 32 * i + 16, 16), side = value(&l, 32 * i + 32, 16);
        beside[i] = mul(&l, before, before, side);
        chain[i] = mul(&l, before, before, next);
        before = next;
    }
    struct lane_plan plan = planned(&l, 2), alone = planned(&l, 1);
    assert_int_equal(check_plan(l.ops, l.scratch, &plan), 2);
    assert_int_equal(check_plan(l.ops, l.scratch, &alone), 1);
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(plan.ops[chain[i]].lane, 0);
        assert_int_equal(plan.ops[chain[i]].after[1], -1);
        assert_true(i + 1 == LINKS || plan.ops[beside[i]].lane == 1);
    }
    assert_true(plan.us < 0.7 * alone.us);
    lanes_release(&plan);
    lanes_release(&alone);
    program_free(l.p);
}

static void test_large_scratch_stays_in_the_first(void **state)
{
    (void)state;
    struct list l;
    list_init(&l);
    const value_id x = value(&l, 0, 16);
    for (int i = 1; i <= 20; i++) {
        mul(&l, x, x, value(&l, 16 * i, 16));
        l.scratch[i - 1] = i % 2 ? LANE_SCRATCH + 1 : LANE_SCRATCH;
    }
    struct lane_plan plan = planned(&l, 3);
    assert_int_equal(check_plan(l.ops, l.scratch, &plan), 3);
    assert_int_equal(plan.scratch[1], LANE_SCRATCH);
    lanes_release(&plan);
    program_free(l.p);
}

static void test_no_ops(void **state)
{
    (void)state;
    struct list l;
    list_init(&l);
    struct lane_plan plan = planned(&l, 2);
    assert_int_equal(plan.n, 0);
    lanes_release(&plan);
    program_free(l.p);
}

/* ---- any list ---- */

static int pick(uint64_t seed, int *at, int n) { return (int)rng_below(seed, 5, (uint64_t)(*at)++, (uint64_t)n); }

static void random_list(struct list *l, uint64_t seed)
{
    int at = 0;
    const int room = 64 << pick(seed, &at, 6);                  /* little of it: nearly a chain; much: nearly free */
    list_init(l);
    for (int i = 0; i < VALUES; i++)
        value(l, pick(seed, &at, room - 1), 1 + pick(seed, &at, room < 64 ? room : 63) % 63);
    const int n = 1 + pick(seed, &at, OPS);
    for (int k = 0; k < n; k++) {
        struct op *op = some_op(l, OP_MUL, 2, 1 + pick(seed, &at, 3));
        for (int i = 0; i < op->n_in; i++)
            op->in[i] = pick(seed, &at, VALUES);
        for (int i = 0; i < op->n_out; i++)
            op->out[i] = pick(seed, &at, VALUES);
        l->scratch[l->n] = pick(seed, &at, 8) ? (size_t)pick(seed, &at, 1000) : LANE_SCRATCH + 1;
        bind(l, op);
    }
}

static void test_any_list(void **state)
{
    (void)state;
    int used = 0;
    struct list *l = xcalloc(1, sizeof *l);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_list(l, seed);
        for (int lanes = 1; lanes <= LANES_MOST; lanes++) {
            struct lane_plan plan = planned(l, lanes);
            const int n = check_plan(l->ops, l->scratch, &plan);
            assert_true(n <= lanes);
            used = n > used ? n : used;
            lanes_release(&plan);
        }
        program_free(l->p);
    }
    free(l);
    assert_int_equal(used, LANES_MOST);
}

/* ---- a training step ---- */

/* The step as the executor binds it, in memory that is not there: nobody looks into it. */
static int bind_step(struct program *p, struct bound_op *ops)
{
    struct memory_plan plan;
    char **at = xcalloc((size_t)p->n_values, sizeof *at), *next = (char *)((uintptr_t)1 << 40), *workspace = (char *)((uintptr_t)1 << 44);
    int n = 0;
    pass_memory_plan(p, &plan);
    for (int v = 0; v < p->n_values; v++) {
        at[v] = plan.offset[v] == SIZE_MAX ? next : workspace + plan.offset[v];
        next += plan.offset[v] == SIZE_MAX ? (value_bytes(&p->values[v]) + 63) / 64 * 64 : 0;
    }
    for (int i = 0; i < p->n_ops; i++) {
        struct op *op = &p->ops[i];
        struct bound_op *b = &ops[n++];
        assert_true(n <= OPS);
        *b = (struct bound_op){p, op, arena_alloc(&p->arena, (size_t)op->n_in * sizeof(void *)),
                               arena_alloc(&p->arena, (size_t)op->n_out * sizeof(void *))};
        for (int k = 0; k < op->n_in; k++)
            b->in[k] = at[op->in[k]];
        for (int k = 0; k < op->n_out; k++)
            b->out[k] = at[op->out[k]];
    }
    memory_plan_release(&plan);
    free(at);
    return n;
}

static double guessed_us(const struct small_model *m, int linger, int lanes)
{
    static const size_t no_scratch[OPS] = {0};
    const struct optimizer_settings settings = small_settings();
    struct program *p = optimized_training(*m, &settings, PASS_SET_ALL & ~(one_pass("mixed-precision") | one_pass("recompute")), NULL, NULL);
    struct bound_op ops[OPS];
    struct lane_plan plan;
    p->linger = linger;
    const int n = bind_step(p, ops);
    assert_true(lanes_plan(&plan, ops, no_scratch, n, lanes));
    assert_int_equal(check_plan(ops, no_scratch, &plan), lanes);
    const double us = plan.us;
    lanes_release(&plan);
    program_free(p);
    return us;
}

/* Gradients of weights go beside the chain; memory that lingers lets more of them. */
static void test_training_steps(void **state)
{
    (void)state;
    for (int m = 0; m < SMALL_MODELS; m++) {
        const double chain = guessed_us(&small_models[m], 0, 1), dense = guessed_us(&small_models[m], 0, 2);
        const double lingering = guessed_us(&small_models[m], 12, 2);
        assert_true(dense < chain);
        assert_true(lingering < 0.8 * chain && lingering <= dense);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hazards),
        cmocka_unit_test(test_chain_goes_on),
        cmocka_unit_test(test_large_scratch_stays_in_the_first),
        cmocka_unit_test(test_no_ops),
        cmocka_unit_test(test_any_list),
        cmocka_unit_test(test_training_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
