/* A step with fewer meetings: threads meet where calls share memory that one of them writes, nowhere else, and the bits are the same. */
#include "ops/cpu/kernel.h"
#include "support/optimized.h"

/* ---- where threads meet ---- */

enum { VALUES = 6, CALLS = 8 };

/* Calls over six values of 16 floats, which begin at `at` floats of one memory. */
struct calls {
    struct program *p;
    float memory[256], scratch[32];
    int64_t at[VALUES];
    struct kernel_call list[CALLS];
    int n;
};

static size_t some_scratch(const struct program *p, const struct op *op, int threads)
{
    (void)p;
    (void)op;
    (void)threads;
    return sizeof(float);
}
static const struct kernel plain = {.name = "plain"}, scratching = {.name = "scratching", .scratch = some_scratch};

static void calls_init(struct calls *c)
{
    *c = (struct calls){.p = program_new("calls")};
    c->p->fewer_meetings = true;
    for (int i = 0; i < VALUES; i++) {
        program_add_value(c->p, arena_printf(&c->p->arena, "v%d", i), VALUE_STATE, F32, shape_of(1, (int64_t)16));
        c->at[i] = 16 * i;
    }
}

/* A call that reads two values and writes one. */
static void call(struct calls *c, const struct kernel *k, value_id a, value_id b, value_id to)
{
    struct arena *memory = &c->p->arena;
    struct op *op = arena_alloc(memory, sizeof *op);
    *op = (struct op){.n_in = 2, .n_out = 1, .in = arena_alloc(memory, 2 * sizeof(value_id)), .out = arena_alloc(memory, sizeof(value_id))};
    void **in = arena_alloc(memory, 2 * sizeof *in), **out = arena_alloc(memory, sizeof *out);
    op->in[0] = a;
    op->in[1] = b;
    op->out[0] = to;
    in[0] = c->memory + c->at[a];
    in[1] = c->memory + c->at[b];
    out[0] = c->memory + c->at[to];
    c->list[c->n++] = (struct kernel_call){.kernel = k, .program = c->p, .op = op, .in = in, .out = out, .scratch = c->scratch,
                                               .scratch_bytes = k->scratch ? sizeof c->scratch : 0};
}

/* "..w." means that the third of four waits, "..s." that it waits for sums, too. */
static void assert_waits(struct calls *c, const char *wanted)
{
    char is[CALLS + 1] = "";
    cpu_find_waits(c->list, c->n, 2);
    for (int i = 0; i < c->n; i++)
        is[i] = c->list[i].early ? '.' : c->list[i].settled ? 's' : 'w';
    assert_string_equal(is, wanted);
    program_free(c->p);
}

static void test_nothing_shared(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    call(&c, &plain, 0, 1, 2);
    call(&c, &plain, 0, 1, 3);              /* reading the same is no reason to wait */
    call(&c, &scratching, 1, 1, 4);
    call(&c, &plain, 0, 0, 5);
    assert_waits(&c, "....");
}

static void test_what_is_shared(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    call(&c, &plain, 0, 1, 2);
    call(&c, &plain, 2, 1, 3);              /* reads what was written */
    call(&c, &plain, 0, 0, 1);              /* writes what was read */
    call(&c, &plain, 0, 0, 1);              /* writes what was written */
    call(&c, &plain, 0, 0, 4);
    call(&c, &plain, 3, 1, 5);              /* reads what was written two calls before */
    assert_waits(&c, ".www.w");
}

static void test_scratch_and_memory_are_shared(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    call(&c, &scratching, 0, 0, 2);
    call(&c, &plain, 0, 0, 3);
    call(&c, &scratching, 0, 0, 4);         /* the same scratch as two calls before */
    assert_waits(&c, "..w");
    calls_init(&c);
    c.at[3] = c.at[2] + 15;                 /* two values that share one number */
    c.at[4] = c.at[2] + 16;
    call(&c, &plain, 0, 0, 2);
    call(&c, &plain, 0, 0, 4);
    call(&c, &plain, 0, 0, 3);
    assert_waits(&c, "..w");
}

/* Halves of the first input and of the output; of the other input all. */
static struct share half(const struct kernel_call *c, const struct kernel_thread *t)
{
    return (struct share){team_span(16, 1, t->index, t->count), 16, 1, c->op->n_in == 2};
}
static const struct kernel halves = {.name = "halves", .share = half}, halves_scratch = {.name = "halves", .share = half, .scratch = some_scratch};

/* What a thread has made itself it does not wait for. */
static void test_what_each_thread_touches(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    call(&c, &halves, 0, 1, 2);
    call(&c, &halves, 2, 1, 3);             /* each reads its half of what it has written */
    call(&c, &halves, 3, 3, 4);             /* and here the other half, too */
    call(&c, &plain, 0, 0, 2);              /* was read before that meeting */
    call(&c, &halves, 2, 1, 5);             /* was written by whom, nobody says */
    assert_waits(&c, "..w.w");
    calls_init(&c);
    c.at[3] = c.at[2] + 8;                  /* its first half is the second one of another value */
    call(&c, &halves, 0, 1, 2);
    call(&c, &halves, 0, 1, 3);
    assert_waits(&c, ".w");
    calls_init(&c);
    call(&c, &halves_scratch, 0, 1, 2);
    call(&c, &halves_scratch, 2, 1, 3);     /* each has its own scratch */
    call(&c, &scratching, 0, 0, 4);         /* and this one all of it */
    assert_waits(&c, "..w");
}

/* More threads than are looked at one by one: they wait as if each touched all. */
static void test_many_threads_touch_all(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    call(&c, &halves, 0, 1, 2);
    call(&c, &halves, 2, 1, 3);
    cpu_find_waits(c.list, c.n, 16);
    assert_true(c.list[1].early);
    cpu_find_waits(c.list, c.n, 17);
    assert_false(c.list[1].early);
    program_free(c.p);
}

/* A call that leaves sums of its output for later. */
static void sum_call(struct calls *c, value_id a, value_id b, value_id to, int scratch)
{
    static const struct kernel summing = {.name = "summing", .scratch = some_scratch, .summed = 1};
    call(c, &summing, a, b, to);
    struct kernel_call *last = &c->list[c->n - 1];
    last->sums = SUMS_LATER;
    last->scratch = c->scratch + scratch;
    last->scratch_bytes = 4 * sizeof *c->scratch;
}

/* What sums are made of and what they become is nobody's until all have met; who wants it then meets once more ('s'). */
static void test_sums_are_made_when_threads_meet(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    call(&c, &plain, 0, 0, 1);
    sum_call(&c, 0, 0, 2, 0);
    sum_call(&c, 0, 0, 3, 4);
    call(&c, &plain, 1, 1, 4);              /* for this one they meet, and make both sums */
    call(&c, &plain, 0, 0, 5);              /* others may still be at it */
    call(&c, &plain, 2, 2, 1);              /* wants one of them */
    assert_waits(&c, "...w.w");
    calls_init(&c);
    sum_call(&c, 0, 0, 2, 0);
    call(&c, &plain, 0, 0, 3);
    call(&c, &plain, 2, 2, 4);              /* wants what is not made yet: they meet, make it, and meet */
    call(&c, &plain, 2, 2, 5);
    assert_waits(&c, "..s.");
    calls_init(&c);
    sum_call(&c, 0, 0, 2, 0);
    sum_call(&c, 0, 0, 3, 0);               /* the same scratch: the first sum must be made before */
    sum_call(&c, 0, 0, 4, 4);
    call(&c, &plain, 0, 0, 2);              /* that was made before the second of the two meetings */
    call(&c, &plain, 0, 0, 3);              /* and this one was not */
    assert_waits(&c, ".s..s");
}

/* Behind a call that wants a thread's own rows alone nothing is different: scratch of sums is kept from its own thread, too. */
static void test_scratch_of_sums_is_kept(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    sum_call(&c, 0, 0, 2, 0);
    call(&c, &halves_scratch, 0, 1, 3);
    assert_waits(&c, ".s");
}

/* One that makes its sums at once: others may still be at them, whatever its share of rows is. */
static void test_sums_made_at_once(void **state)
{
    (void)state;
    static const struct kernel summing = {.name = "summing", .share = half, .scratch = some_scratch, .summed = 1};
    for (int now = 0; now < 2; now++) {
        struct calls c;
        calls_init(&c);
        call(&c, &summing, 0, 1, 2);
        c.list[0].sums = now ? SUMS_NOW : WHOLE;
        call(&c, &halves, 2, 1, 3);
        assert_waits(&c, now ? ".w" : "..");
    }
}

static void test_every_call_meets_without_the_pass(void **state)
{
    (void)state;
    struct calls c;
    calls_init(&c);
    c.p->fewer_meetings = false;
    call(&c, &plain, 0, 1, 2);
    call(&c, &plain, 0, 1, 3);
    assert_waits(&c, "ww");
}

/* ---- steps ---- */

/* Threads that run ahead of each other: many more than there are cores, over steps enough to part them in many ways. */
static void test_same_bits_on_many_threads(void **state)
{
    (void)state;
    enum { STEPS = 8 };
    for (int threads = 3; threads <= 7; threads += 4)
        for (int model = 0; model < SMALL_MODELS; model++) {
            struct optimizer_settings s = small_settings();
            struct backend *b = new_backend(threads, false);
            const struct small_model *m = &small_models[model];
            const pass_set fewer = one_pass("fewer-meetings"), others = PASS_SET_ALL & ~fewer & ~one_pass("autotune");
            s.accumulate = 2;
            struct trained was = train_small(optimized_training(*m, &s, others, NULL, NULL), m, b, STEPS);
            struct trained is = train_small(optimized_training(*m, &s, others | fewer, NULL, NULL), m, b, STEPS);
            assert_true(exec_program(is.exec)->fewer_meetings && !exec_program(was.exec)->fewer_meetings);
            assert_memory_equal(is.metrics, was.metrics, sizeof was.metrics);
            assert_same_weights(was.exec, is.exec, 0, "fewer meetings");
            exec_free(was.exec);
            exec_free(is.exec);
            b->free(b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_shared),
        cmocka_unit_test(test_what_is_shared),
        cmocka_unit_test(test_what_each_thread_touches),
        cmocka_unit_test(test_many_threads_touch_all),
        cmocka_unit_test(test_sums_are_made_when_threads_meet),
        cmocka_unit_test(test_scratch_of_sums_is_kept),
        cmocka_unit_test(test_sums_made_at_once),
        cmocka_unit_test(test_every_call_meets_without_the_pass),
        cmocka_unit_test(test_scratch_and_memory_are_shared),
        cmocka_unit_test(test_same_bits_on_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
