/* Lanes of a graph: ops that share memory keep their order through lanes and waits, others go side by side. Needs no GPU. */
#include "ops/cuda/lanes.h"
#include "support/optimized.h"

enum { VALUES = 48, OPS = 400 };

/* Ops over values of up to 64 floats, which begin anywhere in one memory; what is in it matters to nobody. */
struct list {
    struct program *p;
    float memory[2048];
    float *at[VALUES];
    struct lane_item items[OPS];
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

/* Reads the first n_in of the values and writes the others. */
static int item(struct list *l, int n_in, int n, const value_id *values)
{
    struct lane_touch *touches = arena_alloc(&l->p->arena, (size_t)n * sizeof *touches);
    for (int i = 0; i < n; i++)
        touches[i] = (struct lane_touch){l->at[values[i]], value_bytes(&l->p->values[values[i]]), i >= n_in};
    l->items[l->n] = (struct lane_item){touches, n, 0, 3};
    return l->n++;
}

/* Reads a and b, writes `to`. */
static int mul(struct list *l, value_id a, value_id b, value_id to) { return item(l, 2, 3, (value_id[]){a, b, to}); }

static struct lane_plan planned(const struct list *l, int lanes)
{
    struct lane_plan plan;
    assert_true(lanes_plan(&plan, l->items, l->n, lanes));
    return plan;
}

/* ---- what a plan promises ---- */

/* before[i][j]: j is done when i begins, by the order of their lane and the waits, and what follows from these. */
static bool (*find_before(const struct lane_plan *plan))[OPS]
{
    bool(*before)[OPS] = xcalloc(OPS, sizeof *before);
    int last[LANES_MOST];
    memset(last, 0xff, sizeof last);            /* all -1 */
    for (int k = 0; k < plan->n; k++) {
        const int i = plan->order[k];
        const struct lane_place *op = &plan->places[i];
        assert_int_equal(op->after[op->lane], -1);
        for (int lane = 0; lane < LANES_MOST; lane++) {
            const int j = lane == op->lane ? last[lane] : op->after[lane];
            if (j < 0)
                continue;
            assert_true(lane == op->lane || plan->places[j].awaited);
            before[i][j] = true;
            for (int m = 0; m < plan->n; m++)
                before[i][m] |= before[j][m];
        }
        last[op->lane] = i;
    }
    return before;
}

static bool must_keep_order(const struct lane_item *a, const struct lane_item *b)
{
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            const char *x = a->touches[i].at, *y = b->touches[j].at;
            if ((a->touches[i].written || b->touches[j].written) && x < y + b->touches[j].bytes && y < x + a->touches[i].bytes)
                return true;
        }
    return false;
}

/* Every op has one place, in the order too; what shares memory keeps its order; scratch is there. Returns how many lanes have ops. */
static int check_plan(const struct lane_item *items, const struct lane_plan *plan)
{
    bool(*before)[OPS] = find_before(plan), seen[OPS] = {false};
    int used = 0;
    for (int k = 0; k < plan->n; k++) {
        const int i = plan->order[k];
        assert_true(i >= 0 && i < plan->n && !seen[i]);
        seen[i] = true;
        for (int j = 0; j < i; j++)
            if (must_keep_order(&items[j], &items[i]) && !before[i][j])
                fail_msg("op %d may begin before op %d is done, and they share memory", i, j);
        assert_true(plan->used[plan->places[i].lane] && items[i].scratch <= plan->scratch[plan->places[i].lane]);
        assert_true(items[i].scratch <= LANE_SCRATCH || plan->places[i].lane == 0);
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
        check_plan(l.items, &plan);
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
    assert_int_equal(check_plan(l.items, &plan), 2);
    assert_int_equal(check_plan(l.items, &alone), 1);
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(plan.places[chain[i]].lane, 0);
        assert_int_equal(plan.places[chain[i]].after[1], -1);
        assert_true(i + 1 == LINKS || plan.places[beside[i]].lane == 1);
    }
    assert_true(plan.us < 0.7 * alone.us);
    lanes_release(&plan);
    lanes_release(&alone);
    program_free(l.p);
}

enum { FIXED = 1000 };

/* What a plan takes in lanes beside the first, and what was said before there was one. */
static size_t beside_of(const struct lane_plan *plan)
{
    size_t bytes = 0;
    for (int l = 1; l < LANES_MOST; l++)
        bytes += plan->scratch[l];
    return bytes;
}

static size_t most_beside(const struct list *l, int lanes)
{
    size_t *scratch = xcalloc((size_t)l->n + 1, sizeof *scratch);
    for (int i = 0; i < l->n; i++)
        scratch[i] = l->items[i].scratch;
    const size_t most = lanes_most_bytes(scratch, l->n, lanes, FIXED);
    free(scratch);
    return most;
}

static void test_large_scratch_stays_in_the_first(void **state)
{
    (void)state;
    struct list l;
    list_init(&l);
    const value_id x = value(&l, 0, 16);
    for (int i = 1; i <= 20; i++) {
        mul(&l, x, x, value(&l, 16 * i, 16));
        l.items[i - 1].scratch = i % 2 ? LANE_SCRATCH + 1 : LANE_SCRATCH;
    }
    struct lane_plan plan = planned(&l, 3);
    assert_int_equal(check_plan(l.items, &plan), 3);
    assert_int_equal(plan.scratch[1], LANE_SCRATCH);
    assert_true(beside_of(&plan) == 2 * LANE_SCRATCH && most_beside(&l, 3) == 2 * (LANE_SCRATCH + FIXED) && most_beside(&l, 1) == 0);
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
        value_id values[8];
        const int touched = 2 + pick(seed, &at, 6), n_in = pick(seed, &at, touched);
        for (int i = 0; i < touched; i++)
            values[i] = pick(seed, &at, VALUES);
        item(l, n_in, touched, values);
        l->items[k].scratch = pick(seed, &at, 8) ? (size_t)pick(seed, &at, 1000) : LANE_SCRATCH + 1;
        l->items[k].us = 1 + pick(seed, &at, 20);
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
            const int n = check_plan(l->items, &plan);
            assert_true(n <= lanes && beside_of(&plan) + (size_t)(lanes - 1) * FIXED <= most_beside(l, lanes));
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
static int items_of_step(struct program *p, struct lane_item *items)
{
    struct memory_plan plan;
    char **at = xcalloc((size_t)p->n_values, sizeof *at), *next = (char *)((uintptr_t)1 << 40), *workspace = (char *)((uintptr_t)1 << 44);
    pass_memory_plan(p, &plan);
    for (int v = 0; v < p->n_values; v++) {
        at[v] = plan.offset[v] == SIZE_MAX ? next : workspace + plan.offset[v];
        next += plan.offset[v] == SIZE_MAX ? (value_bytes(&p->values[v]) + 63) / 64 * 64 : 0;
    }
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        struct lane_touch *touches = arena_alloc(&p->arena, (size_t)(op->n_in + op->n_out) * sizeof *touches);
        for (int k = 0; k < op->n_in + op->n_out; k++) {
            const value_id v = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
            touches[k] = (struct lane_touch){at[v], value_bytes(&p->values[v]), k >= op->n_in};
        }
        assert_true(i < OPS);
        items[i] = (struct lane_item){touches, op->n_in + op->n_out, 0, lanes_guess_us(p, op)};
    }
    memory_plan_release(&plan);
    free(at);
    return p->n_ops;
}

static double guessed_us(const struct small_model *m, int linger, int lanes)
{
    const struct optimizer_settings settings = small_settings();
    struct program *p = optimized_training(*m, &settings, PASS_SET_ALL & ~(one_pass("mixed-precision") | one_pass("recompute")), NULL, NULL);
    struct lane_item items[OPS];
    struct lane_plan plan;
    p->linger = linger;
    const int n = items_of_step(p, items);
    assert_true(lanes_plan(&plan, items, n, lanes));
    assert_int_equal(check_plan(items, &plan), lanes);
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
