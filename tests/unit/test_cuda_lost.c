/* A rank that is lost while NCCL sums: whoever waits for the device gets to know it, and everything can be closed. With an NCCL that does what
 * the real one does then (support/fake_nccl.cu), since one GPU takes one rank of the real one. Needs a GPU. */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/comm.h"
#include "core/clock.h"
#include "support/fake_nccl.h"
#include "support/gpu.h"

#ifdef HONE_FAKE_NCCL

enum { N = 1 << 12 };
static const int64_t KNOWN_NS = 300000000;      /* until the group says that a rank is lost */
static const double SOON_S = 5;
enum { HANGS_S = 20 };

static int64_t lost_at;                          /* 0: nobody is */

static enum status group_status(struct comm *c, struct error *err)
{
    (void)c;
    return !lost_at || clock_ns() < lost_at + KNOWN_NS ? OK : error_set(err, CANNOT, "rank 1 is lost");
}

static enum status nothing_to_share(struct comm *c, void *data, size_t bytes, struct error *err)
{
    (void)c, (void)data, (void)bytes, (void)err;
    return OK;
}

static struct comm group = {.size = 2, .nccl = true, .status = group_status, .share = nothing_to_share};

struct job {
    struct backend *b;
    struct exec *e;
    value_id batch, sum;
};

/* A step that sums what the host writes. */
static struct job new_job(enum cuda_graphs graphs)
{
    struct job j = {0};
    struct error err;
    const struct cuda_wish wish = {.graphs = graphs, .nccl = true};
    assert_ok(cuda_backend_new_for(&j.b, &wish, &err), err);
    j.b->comm = &group;
    struct program *p = program_new("sums");
    j.batch = program_add_value(p, "batch", VALUE_INPUT, F32, shape_of(1, (int64_t)N));
    p->phase = PHASE_BACKWARD;
    const value_id bucket = program_emit(p, OP_REDUCE_START, (struct op_attrs){.parts = 1}, "bucket", 1, j.batch);
    j.sum = program_emit(p, OP_REDUCE_WAIT, (struct op_attrs){.parts = 1}, "sum", 2, bucket, j.batch);
    j.e = new_exec(p, j.b);
    return j;
}

static void step(struct job *j, float with)
{
    static float batch[N];
    for (int i = 0; i < N; i++)
        batch[i] = with;
    exec_write(j->e, j->batch, batch);
    exec_run(j->e, PHASE_DATA, PHASE_OPTIMIZE);
}

static float result(struct job *j)
{
    static float sum[N];
    exec_read(j->e, j->sum, sum);
    return sum[N - 1];
}

/* lose: what the host does when the rank is lost already, and must come back from. */
static void check_lost(enum cuda_graphs graphs, void (*lose)(struct job *j))
{
    void *fake = dlopen(HONE_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(fake);
    void (*lose_ranks)(void) = (void (*)(void))dlsym(fake, "fake_nccl_lose");
    int (*left)(void) = (int (*)(void))dlsym(fake, "fake_nccl_graphs");
    struct job j = new_job(graphs);
    struct error err;
    for (int i = 1; i <= 4; i++) {
        step(&j, (float)i);
        assert_true(result(&j) == (float)i);
    }
    assert_ok(exec_status(j.e, &err), err);
    assert_int_equal(left() > 0, graphs == GRAPHS_ALWAYS);
    lose_ranks();
    lost_at = clock_ns();
    alarm(HANGS_S);
    lose(&j);
    const double took = (double)(clock_ns() - lost_at) / 1e9;
    step(&j, 1);
    assert_int_equal(exec_status(j.e, &err), CANNOT);
    exec_free(j.e);
    j.b->free(j.b);
    alarm(0);
    assert_int_equal(left(), 0);
    if (took > SOON_S)
        fail_msg("it took %g s until the host went on", took);
}

static void reads(struct job *j)
{
    step(j, 1);
    result(j);
}

/* Batches go ahead of the device until there is no more room for them. */
static void writes(struct job *j)
{
    struct error err;
    for (int i = 0; i < 100 && exec_status(j->e, &err) == OK; i++)
        step(j, 1);
    exec_finish(j->e);
}

static const struct lost_case {
    const char *name;
    enum cuda_graphs graphs;
    const char *checks;             /* HONE_CUDA_SYNC */
    void (*lose)(struct job *j);
} cases[] = {
    {"a result is read, graphs", GRAPHS_ALWAYS, "0", reads},
    {"a result is read, op by op", GRAPHS_NEVER, "0", reads},
    {"every op is waited for", GRAPHS_NEVER, "1", reads},
    {"batches are written, graphs", GRAPHS_ALWAYS, "0", writes},
    {"batches are written, op by op", GRAPHS_NEVER, "0", writes},
};

static const struct lost_case *now;

static void test_lost(void **state)
{
    (void)state;
    NEEDS_GPU;
    print_message("%s\n", now->name);
    check_lost(now->graphs, now->lose);
}

/* Says where. */
static void hangs(int signal)
{
    void *calls[32];
    (void)signal;
    backtrace_symbols_fd(calls, backtrace(calls, 32), STDERR_FILENO);
    _exit(1);
}

/* NCCL is loaded once in a process, and a job that lost a rank ends: each case is a process. */
int main(void)
{
    const struct CMUnitTest one[] = {cmocka_unit_test(test_lost)};
    int failed = 0;
    setenv("HONE_NCCL", HONE_FAKE_NCCL, 1);
    signal(SIGALRM, hangs);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = 1;
        fflush(NULL);
        const pid_t child = fork();
        if (!child) {
            now = &cases[i];
            setenv("HONE_CUDA_SYNC", now->checks, 1);
            exit(cmocka_run_group_tests(one, open_gpu, close_gpu));
        }
        failed += child < 0 || waitpid(child, &status, 0) != child || status;
    }
    return failed;
}

#else

int main(void)
{
    puts("skipped: this build knows no NCCL");
    return 0;
}

#endif
