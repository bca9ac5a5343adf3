/* What a thread claims while it waits: every line that it will update and that others have read, once, and none before its last reader is behind it. */
#include "ops/cpu/claims.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"
#include "support/plain.h"

enum { TENSORS = 3, READERS = 5, CALLS = READERS + 1, MOST_THREADS = 6, LINE = 64, FLOATS = LINE / (int)sizeof(float) };
static const int64_t sizes[TENSORS] = {1000, 64, 5003};
/* Which call reads which tensor: the first one's last reader is call 3, the second one's is call 0, nobody reads the third. */
static const int reads[READERS] = {1, 0, -1, 0, -1};
static const int last_reader[TENSORS] = {3, 0, -1};

static value_id add(struct program *p, const char *name, enum value_kind kind, int i, int64_t n)
{
    return program_add_value(p, arena_printf(&p->arena, "%s%d", name, i), kind, F32, shape_of(1, n));
}

static struct program *update_program(void)
{
    struct program *p = program_new("update");
    value_id in[4 * TENSORS + 3];
    int n = 0;
    static const struct { const char *name; enum value_kind kind; } roles[] = {{"w", VALUE_PARAMETER}, {"m", VALUE_STATE}, {"v", VALUE_STATE}, {"g", VALUE_INPUT}};
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < TENSORS; i++)
            in[n++] = add(p, roles[r].name, roles[r].kind, i, sizes[i]);
    in[n++] = program_add_value(p, "lr", VALUE_INPUT, F32, shape_of(0));
    in[n++] = program_add_value(p, "step", VALUE_INPUT, I32, shape_of(0));
    in[n++] = program_add_value(p, "factor", VALUE_INPUT, F32, shape_of(0));
    p->phase = PHASE_OPTIMIZE;
    const struct op_attrs attrs = {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .parts = TENSORS};
    assert_int_equal(program_add_op(p, OP_ADAMW_ALL, attrs, "update", n, in), 0);
    return p;
}

/* Calls that read weights, and the update, on so many threads. */
struct step {
    struct backend *b;
    struct program *p;
    struct plain x;
    struct op readers[READERS];
    value_id read[READERS];
    void *in[CALLS][4 * TENSORS + 3], *out[3 * TENSORS];
    struct kernel_call calls[CALLS];
};

static const struct kernel reader = {.name = "reader"};

static void step_init(struct step *s, int threads)
{
    struct error err;
    *s = (struct step){.p = update_program()};
    assert_ok(cpu_backend_new(&s->b, threads, false, &err), err);
    s->x = plain_new(s->p, s->b);
    for (int i = 0; i < READERS; i++) {
        s->read[i] = reads[i];
        s->readers[i] = (struct op){.in = &s->read[i], .n_in = reads[i] >= 0, .phase = PHASE_FORWARD};
        s->in[i][0] = reads[i] >= 0 ? s->x.memory[reads[i]] : NULL;
        s->calls[i] = (struct kernel_call){.kernel = &reader, .program = s->p, .op = &s->readers[i], .in = s->in[i]};
    }
    struct op *op = &s->p->ops[0];
    for (int i = 0; i < op->n_in; i++)
        s->in[READERS][i] = s->x.memory[op->in[i]];
    for (int i = 0; i < op->n_out; i++)
        s->out[i] = s->x.memory[op->out[i]];
    s->calls[READERS] = (struct kernel_call){.kernel = cpu_choose(s->b, s->p, op), .program = s->p, .op = op, .in = s->in[READERS], .out = s->out};
    for (int i = 0; i < TENSORS; i++)
        for (int64_t k = 0; k < sizes[i]; k++)
            ((float *)s->x.memory[3 * TENSORS + i])[k] = 1;
    plain_write(&s->x, 4 * TENSORS, &(float){0.1f});
    plain_write(&s->x, 4 * TENSORS + 1, &(int32_t){1});
    plain_write(&s->x, 4 * TENSORS + 2, &(float){1});
}

static void step_release(struct step *s)
{
    plain_release(&s->x);
    program_free(s->p);
    s->b->free(s->b);
}

/* The tensor that a line is of, and where in it. */
static int tensor_of(const struct step *s, const void *line, int64_t *number)
{
    for (int i = 0; i < TENSORS; i++) {
        const float *from = s->x.memory[i], *at = line;
        if (at >= from && at < from + sizes[i]) {
            *number = at - from;
            return i;
        }
    }
    fail_msg("a line of no weight is claimed");
    return -1;
}

/* Who has claimed each line of each weight, 1 + the thread. */
struct claimed { int by[TENSORS][5003 / FLOATS + 1]; };

static void claim_all(struct step *s, struct claims *c, int thread, struct claimed *to)
{
    claims_begin(c, thread);
    for (int call = 0; call < CALLS; call++) {
        const int met = call / 2 * 2;               /* every second call is early */
        claims_reach(c, thread, call, met);
        for (const void *line; (line = claims_next(c, thread));) {
            int64_t number = 0;
            const int tensor = tensor_of(s, line, &number);
            assert_true(last_reader[tensor] >= 0 && last_reader[tensor] < met && call < READERS);
            assert_int_equal(number % FLOATS, 0);
            assert_int_equal(to->by[tensor][number / FLOATS], 0);
            to->by[tensor][number / FLOATS] = 1 + thread;
        }
    }
}

/* What the thread writes of weights that were read is what it has claimed. */
static void check_writes(struct step *s, const struct claimed *claimed, int thread, int threads)
{
    const struct kernel_thread t = {thread, threads, NULL};
    for (int i = 0; i < TENSORS; i++)
        memset(s->x.memory[i], 0, (size_t)sizes[i] * sizeof(float));
    s->calls[READERS].kernel->run(&s->calls[READERS], &t);
    for (int i = 0; i < TENSORS; i++)
        for (int64_t k = 0; k < sizes[i] && last_reader[i] >= 0; k++) {
            const bool wrote = ((const float *)s->x.memory[i])[k] != 0, has = claimed->by[i][k / FLOATS] == 1 + thread;
            if (wrote != has)
                fail_msg("number %ld of weight %d: thread %d of %d %s it and %s it", (long)k, i, thread, threads, wrote ? "writes" : "does not write", has ? "claims" : "does not claim");
        }
}

static void test_what_is_written_is_claimed_once(void **state)
{
    (void)state;
    for (int threads = 2; threads <= MOST_THREADS; threads++) {
        struct step s;
        struct claimed claimed = {0};
        step_init(&s, threads);
        struct claims *c = claims_find(s.calls, CALLS, threads);
        if (!s.calls[READERS].kernel->updates)
            skip();                                 /* no instruction asks for what will be written */
        assert_non_null(c);
        assert_int_equal(claims_until(c), READERS);
        for (int t = 0; t < threads; t++)
            claim_all(&s, c, t, &claimed);
        for (int i = 0; i < TENSORS; i++)
            for (int64_t k = 0; k < sizes[i]; k += FLOATS)
                assert_true((claimed.by[i][k / FLOATS] > 0) == (last_reader[i] >= 0));
        for (int t = 0; t < threads; t++)
            check_writes(&s, &claimed, t, threads);
        claims_free(c);
        step_release(&s);
    }
}

/* The next run claims the same again, and to take a line changes nothing. */
static void test_every_run_begins_anew(void **state)
{
    (void)state;
    struct step s;
    step_init(&s, 2);
    struct claims *c = claims_find(s.calls, CALLS, 2);
    struct claimed claimed[2] = {{{{0}}}};
    if (!c)
        skip();
    for (int64_t k = 0; k < sizes[0]; k++)
        ((float *)s.x.memory[0])[k] = (float)k;
    for (int run = 0; run < 2; run++) {
        claims_begin(c, 0);
        claims_reach(c, 0, READERS - 1, READERS - 1);
        for (int i = 0; i < 500; i++)
            claims_take(c, 0);
        assert_null(claims_next(c, 0));
        claim_all(&s, c, 0, &claimed[run]);
        assert_int_equal(claimed[run].by[0][0], 1);
    }
    assert_memory_equal(&claimed[0], &claimed[1], sizeof claimed[0]);
    for (int64_t k = 0; k < sizes[0]; k++)
        assert_true(((float *)s.x.memory[0])[k] == (float)k);
    claims_free(c);
    step_release(&s);
}

static void test_nothing_to_claim(void **state)
{
    (void)state;
    struct step s;
    step_init(&s, 2);
    assert_null(claims_find(s.calls, CALLS, 1));            /* nobody else has read it */
    assert_null(claims_find(s.calls, READERS, 2));          /* nothing is updated */
    assert_null(claims_find(s.calls + READERS, 1, 2));      /* nobody reads it */
    for (int i = 0; i < READERS; i++)
        s.readers[i].phase = PHASE_SETUP;
    assert_null(claims_find(s.calls, CALLS, 2));            /* or did so once, before the first step */
    for (int i = 0; i < READERS; i++)
        s.readers[i].phase = PHASE_FORWARD;
    s.p->ops[0].attrs.masked = true;
    assert_null(claims_find(s.calls, CALLS, 2));            /* nobody knows who will update what */
    claims_free(NULL);
    step_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_written_is_claimed_once), cmocka_unit_test(test_every_run_begins_anew), cmocka_unit_test(test_nothing_to_claim)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
