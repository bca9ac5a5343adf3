/* Whether ranks can sum by NCCL, and the words where they cannot. Ranks are threads of one machine here, and their GPUs made up. */
#include "support/rank_threads.h"
#include "train/ranks.h"

struct asked { struct rank_gpu gpus[2]; enum status status[2]; struct error err[2]; };

static void ask(struct dist *d, void *argument)
{
    struct asked *a = argument;
    a->status[dist_rank(d)] = ranks_can_nccl(d, a->gpus, &a->err[dist_rank(d)]);
}

/* Every rank comes to the same, in the same words: begins and has. */
static void check(struct rank_gpu first, struct rank_gpu second, enum status status, const char *begins, const char *has)
{
    struct world w = {.size = 2, .patience_s = 60};
    struct asked a = {.gpus = {first, second}};
    on_ranks(&w, ask, &a);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(a.status[r], status);
        if (status != OK && (strncmp(a.err[r].text, begins, strlen(begins)) || !strstr(a.err[r].text, has)))
            fail_msg("'%s' does not begin with '%s', or lacks '%s'", a.err[r].text, begins, has);
    }
}

static void test_who_can(void **state)
{
    const struct rank_gpu one = {1, 2, 22809, "0000:1B:00.0"}, other = {1, 2, 22809, "0000:43:00.0"};
    struct rank_gpu older = other, without = other, none = {0};
    (void)state;
    older.nccl = 21900;
    without.nccl = 0;
    check(one, other, OK, "", "");
    check(one, one, CANNOT, "dist.transport is nccl, and rank 1 (", "has the GPU 0000:1B:00.0 that rank 0 (");
    check(one, one, CANNOT, "dist.transport is nccl, and rank 1 (", "NCCL wants one for each rank, and that machine has 2; start fewer ranks "
          "there, or choose dist.transport: mpi, which lets ranks share one");
    check(one, older, CANNOT, "dist.transport is nccl, and rank 1 (", "has version 21900 of it, where rank 0 (");
    check(one, without, CANNOT, "dist.transport is nccl, and rank 1 (", ") has no NCCL; ");
    check(none, one, CANNOT, "dist.transport is nccl, and rank 0 (", ") has no GPU; ");
}

/* On CPUs nothing is asked of a GPU, and all ranks agree. */
struct placed { struct config config; enum status status[2]; bool nccl[2]; };

static void place(struct dist *d, void *argument)
{
    struct placed *p = argument;
    struct config c = p->config;
    struct error err;
    c.dist.comm = dist_comm(d);
    p->status[dist_rank(d)] = ranks_place(&c, &err);
    p->nccl[dist_rank(d)] = c.dist.comm->nccl;
}

static void test_ranks_of_cpus(void **state)
{
    struct world w = {.size = 2, .patience_s = 60};
    struct placed p = {.config = {.device = DEVICE_CPU}};
    (void)state;
    on_ranks(&w, place, &p);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(p.status[r], OK);
        assert_false(p.nccl[r]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_can), cmocka_unit_test(test_ranks_of_cpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
