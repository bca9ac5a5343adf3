/* Threads that wait help those that are late with pieces of their work: results have the same bits, and, all in all, somebody does help. Every kernel that shares out its work has a
 * case that is large enough for several pieces. Where all cores are busy a thread may sleep while it could help, so each case is tried until somebody did, for a while. */
#include <sched.h>
#include <unistd.h>

#include "core/clock.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"
#include "support/op_compare.h"

enum { THREADS = 3, FEWEST = 6, LATE_US = 300 };
static const double PATIENCE_S = 1;

/* A call in which one thread is late. */
struct late {
    const struct kernel_call *call;
    struct team *team;
    int who;
    bool sums;
};

static void run_late(void *argument, int member)
{
    const struct late *l = argument;
    const struct kernel_thread t = {member, team_size(l->team), l->team};
    if (member == l->who)
        usleep(LATE_US);
    l->call->kernel->run(l->call, &t);
    team_barrier(l->team);
    if (l->sums)
        l->call->kernel->finish(l->call, &t);
}

static struct plain filled(struct program *p, const struct op_case *c, struct backend *b)
{
    struct plain x = plain_new(p, b);
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&x, i, c, i);
    return x;
}

static void check_late(struct program *p, const struct op_case *c, struct backend *b, const struct plain *should, int who)
{
    struct op *op = &p->ops[0];
    struct plain x = filled(p, c, b);
    void *in[CASE_INPUTS], *out[16];
    const struct kernel *k = cpu_choose(b, p, op);
    const size_t bytes = k->scratch ? k->scratch(p, op, b->lanes) : 0;
    char *scratch = plain_alloc(bytes);
    for (int i = 0; i < op->n_in; i++)
        in[i] = x.memory[op->in[i]];
    for (int i = 0; i < op->n_out; i++) {
        out[i] = x.memory[op->out[i]];
        if (!op_info(op->kind)->n_updated)
            memset(out[i], 0xff, value_bytes(&p->values[op->out[i]]));
    }
    const struct kernel_call call = {.kernel = k, .program = p, .op = op, .in = in, .out = out, .scratch = scratch, .scratch_bytes = bytes,
                                     .blocks = cpu_blocks(k, p, op, b->lanes)};
    team_run_helping(cpu_team(b), run_late, &(struct late){&call, cpu_team(b), who, cpu_sums(k, p, op, b->lanes)}, &(struct team_habits){0});
    for (int i = 0; i < op->n_out; i++)
        if (memcmp(out[i], should->memory[op->out[i]], value_bytes(&p->values[op->out[i]])))
            fail_msg("%s, case %d: output %d has other bits where thread %d was late", op_info(op->kind)->name, (int)(c - large_cases), i, who);
    free(scratch);
    plain_release(&x);
}

static bool has_cores(void)
{
    cpu_set_t set;
    return !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) >= 2;
}

static void test_same_bits_whoever_is_late(void **state)
{
    (void)state;
    struct error err;
    struct backend *b = NULL;
    assert_ok(cpu_backend_new(&b, THREADS, false, &err), err);
    for (int i = 0; i < LARGE_CASES; i++) {
        struct program *p = program_of_case(&large_cases[i]);
        struct plain should = filled(p, &large_cases[i], b);
        plain_run_op(&should, &p->ops[0]);
        const uint64_t before = team_helped(cpu_team(b));
        const double start = clock_s();
        for (int tries = 0; tries < FEWEST || (team_helped(cpu_team(b)) == before && clock_s() < start + PATIENCE_S); tries++)
            check_late(p, &large_cases[i], b, &should, tries % THREADS);
        plain_release(&should);
        program_free(p);
    }
    assert_true(!has_cores() || team_helped(cpu_team(b)) > 0);
    b->free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits_whoever_is_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
