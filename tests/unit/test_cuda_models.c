/* Models on a GPU: against PyTorch's numbers, and trained beside the CPU. Two runs, graphs and kernels by themselves, measured steps and
 * others: the same bits. Needs a GPU. */
#include "support/gpu.h"
#include "support/optimized.h"
#include "support/plain.h"
#include "support/torch.h"

/* CPU and GPU sum in different orders, and the optimizer divides by the size of a gradient: as a share of the first loss. */
static const double BESIDE = 2e-5;
enum { BESIDE_STEPS = 50 };

static void test_gpt(void **state) { (void)state; NEEDS_GPU; check_model(&small_models[SMALL_GPT], gpu); }
static void test_llama(void **state) { (void)state; NEEDS_GPU; check_model(&small_models[SMALL_LLAMA], gpu); }
static void test_postln(void **state) { (void)state; NEEDS_GPU; check_model(&small_models[SMALL_POSTLN], gpu); }
static void test_training_gpt(void **state) { (void)state; NEEDS_GPU; check_training(&small_models[SMALL_GPT], gpu); }
static void test_training_llama(void **state) { (void)state; NEEDS_GPU; check_training(&small_models[SMALL_LLAMA], gpu); }

/* ---- a step after all passes ---- */

static struct program *optimized(struct small_model m)
{
    const struct optimizer_settings settings = small_settings();
    m.config.dropout = 0.1;
    return optimized_training(m, &settings, PASS_SET_ALL & ~one_pass("mixed-precision"), NULL, NULL);
}

/* ---- with values of 16 bits ---- */

/* Beside the reference in the same types, as a share of the first loss: roundings fall differently where sums do, and training carries them
 * on. Beside PyTorch's curve in double precision: what the types themselves cost. */
static const double NARROW_BESIDE[] = {[BF16] = 6e-3, [F16] = 1e-3}, NARROW_CURVE[] = {[BF16] = 0.01, [F16] = 2e-3};

/* passes: all, or none but this one. */
static struct program *narrow(struct small_model m, enum dtype type, bool passes)
{
    const struct optimizer_settings settings = small_settings();
    const pass_set one = one_pass("mixed-precision");
    return training_towards(m, &settings, passes ? PASS_SET_ALL : one, NULL, NULL, (struct precision_goal){.narrow = type});
}

static struct program *lingering(struct small_model m)
{
    struct program *p = optimized(m);
    p->linger = 12;
    return p;
}

/* measure: every second step is measured, so that its ops go one by one. */
static struct trained train_program(struct program *p, const struct small_model *m, struct backend *b, bool measure)
{
    struct trained t = {.exec = new_exec(p, b)};
    struct error err;
    for (int step = 1; step <= BESIDE_STEPS; step++) {
        const struct small_batch batch = random_batch(m, (uint64_t)step % 5);
        write_batch(t.exec, &batch);
        exec_measure(t.exec, measure && step % 2 == 0);
        exec_run(t.exec, PHASE_DATA, PHASE_OPTIMIZE);
        read_metrics(t.exec, step, t.metrics[step - 1]);
    }
    assert_ok(exec_status(t.exec, &err), err);
    return t;
}

static struct trained train(const struct small_model *m, struct backend *b, bool measure)
{
    return train_program(optimized(*m), m, b, measure);
}

static void test_beside_the_cpu(void **state)
{
    (void)state;
    NEEDS_GPU;
    struct backend *cpu = new_backend(2, false);
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct trained a = train(&small_models[m], cpu, false), b = train(&small_models[m], gpu, false);
        for (int i = 0; i < BESIDE_STEPS; i++)
            assert_near(b.metrics[i][METRIC_LOSS], a.metrics[i][METRIC_LOSS], BESIDE * a.metrics[0][METRIC_LOSS], "the loss on the GPU");
        exec_free(a.exec);
        exec_free(b.exec);
    }
    cpu->free(cpu);
}

static void check_same(struct backend *other, bool measure)
{
    const size_t metrics = BESIDE_STEPS * METRICS * sizeof(float);
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct trained a = train(&small_models[m], gpu, false), b = train(&small_models[m], other, measure);
        assert_memory_equal(a.metrics, b.metrics, metrics);
        assert_same_weights(a.exec, b.exec, 0, small_models[m].name);
        exec_free(a.exec);
        exec_free(b.exec);
    }
}

/* A graph with so many lanes as ops can have, beside one that is a chain. */
static void test_lanes_change_no_bit(void **state)
{
    (void)state;
    NEEDS_GPU;
    struct error err;
    struct backend *chain = NULL, *wide = NULL;
    setenv("HONE_CUDA_LANES", "1", 1);
    assert_ok(cuda_backend_new(&chain, true, &err), err);
    setenv("HONE_CUDA_LANES", "4", 1);
    assert_ok(cuda_backend_new(&wide, true, &err), err);
    unsetenv("HONE_CUDA_LANES");
    for (int m = 0; m < SMALL_MODELS; m++) {
        struct trained a = train(&small_models[m], chain, false);
        struct trained b = train_program(lingering(small_models[m]), &small_models[m], wide, false);
        assert_memory_equal(a.metrics, b.metrics, BESIDE_STEPS * METRICS * sizeof(float));
        assert_same_weights(a.exec, b.exec, 0, small_models[m].name);
        exec_free(a.exec);
        exec_free(b.exec);
    }
    chain->free(chain);
    wide->free(wide);
}

/* All memory that is left, so much that nothing of 4 KiB is; freed by the caller. */
static int take_all(struct backend *b, void **taken, int most)
{
    int n = 0;
    for (size_t bytes = (size_t)1 << 40; bytes >= 4096; bytes /= 2)
        while (n < most && (taken[n] = b->alloc(b, bytes)))
            n++;
    return n;
}

/* From the second step on, which is that of graphs, there is no memory. */
static void test_no_memory_changes_no_bit(void **state)
{
    (void)state;
    NEEDS_GPU;
    enum { MOST = 4096 };
    static void *taken[MOST];
    struct error err;
    struct backend *other = NULL;
    const struct small_model *m = &small_models[SMALL_LLAMA];
    assert_ok(cuda_backend_new(&other, true, &err), err);
    struct trained a = train(m, gpu, false), b = {.exec = new_exec(optimized(*m), other)};
    int n = 0;
    for (int step = 1; step <= BESIDE_STEPS; step++) {
        const struct small_batch batch = random_batch(m, (uint64_t)step % 5);
        write_batch(b.exec, &batch);
        exec_run(b.exec, PHASE_DATA, PHASE_OPTIMIZE);
        read_metrics(b.exec, step, b.metrics[step - 1]);
        n = n ? n : take_all(other, taken, MOST);
    }
    assert_ok(exec_status(b.exec, &err), err);
    assert_memory_equal(a.metrics, b.metrics, BESIDE_STEPS * METRICS * sizeof(float));
    assert_same_weights(a.exec, b.exec, 0, m->name);
    while (n > 0)
        other->free_memory(other, taken[--n], 0);
    exec_free(a.exec);
    exec_free(b.exec);
    other->free(other);
}

/* Large enough for ops to run in pieces: gradients of the ids that are sorted early, squares that are summed as gradients come. */
static void test_pieces_change_no_bit(void **state)
{
    (void)state;
    NEEDS_GPU;
    const struct small_model m = {"large", 4, {.arch = ARCH_LLAMA, .vocab = 3000, .dim = 256, .layers = 2, .heads = 4, .kv_heads = 4,
                                               .ffn = 640, .seq = 128, .rope_base = 10000, .norm_eps = 1e-6}};
    struct trained a = train_program(lingering(m), &m, gpu, false), b = train_program(lingering(m), &m, gpu_plain, false);
    assert_memory_equal(a.metrics, b.metrics, BESIDE_STEPS * METRICS * sizeof(float));
    assert_same_weights(a.exec, b.exec, 0, m.name);
    exec_free(a.exec);
    exec_free(b.exec);
}

/* The host runs ahead: nothing is read until the end, and what it wrote from is its own again at once. */
static void test_batches_ahead_change_no_bit(void **state)
{
    (void)state;
    NEEDS_GPU;
    const struct small_model *m = &small_models[SMALL_POSTLN];
    struct trained slow = train(m, gpu, false), fast = {.exec = new_exec(optimized(*m), gpu)};
    struct error err;
    for (int step = 1; step <= BESIDE_STEPS; step++) {
        struct small_batch batch = random_batch(m, 77);
        write_batch(fast.exec, &batch);                         /* of two writes to one place the second counts */
        batch = random_batch(m, (uint64_t)step % 5);
        write_batch(fast.exec, &batch);
        memset(&batch, 0, sizeof batch);
        exec_run(fast.exec, PHASE_DATA, PHASE_OPTIMIZE);
    }
    assert_ok(exec_status(fast.exec, &err), err);
    assert_same_weights(slow.exec, fast.exec, 0, m->name);
    exec_free(slow.exec);
    exec_free(fast.exec);
}

/* ---- gradients that a kept selection leaves out ---- */

/* A sum over rows and a gradient of a weight, of group 1: needed in the first step, and not in the second, which keeps what group 0 alone was
 * selected in. */
static void test_ops_are_left_out(void **state)
{
    (void)state;
    NEEDS_GPU;
    enum { ROWS = 64, WIDTH = 16 };
    struct program *p = program_new("left out");
    struct error err;
    const value_id last = program_add_value(p, "last", VALUE_STATE, I32, shape_of(1, (int64_t)2));
    const value_id x = program_add_value(p, "x", VALUE_INPUT, F32, shape_of(2, (int64_t)ROWS, (int64_t)WIDTH));
    const value_id like = program_add_value(p, "like", VALUE_INPUT, F32, shape_of(1, (int64_t)WIDTH));
    p->step = program_add_value(p, "step", VALUE_STATE, I32, shape_of(0));
    const value_id held = program_emit(p, OP_HELD, (struct op_attrs){.every = 2}, "held", 2, last, p->step);
    const value_id narrow = program_emit(p, OP_CAST, (struct op_attrs){.to = BF16}, "narrow", 1, x);
    const value_id sums = program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "sums", 2, x, like);
    const value_id dw = program_emit(p, OP_MATMUL, (struct op_attrs){.trans_a = true}, "dw", 2, narrow, narrow);
    const struct op_leave leave = {held, 1, 0.5};
    p->ops[2].leave = p->ops[3].leave = arena_copy(&p->arena, &leave, sizeof leave);
    p->loss = sums;                 /* what is read after a step keeps its memory */
    p->count = dw;
    struct exec *e = NULL;
    assert_ok(exec_new(&e, p, gpu, NULL, &err), err);
    for (int32_t run = 0; run < 6; run++) {             /* by kernels, then by the graph */
        const int32_t step = run % 2, lasts[2] = {step, 0};
        float numbers[ROWS * WIDTH];
        for (int i = 0; i < ROWS * WIDTH; i++)
            numbers[i] = step ? 2 : 1;
        exec_write(e, p->step, &step);
        exec_write(e, last, lasts);
        exec_write(e, x, numbers);
        exec_run(e, PHASE_DATA, PHASE_FORWARD);
        float *sum = read_value(e, sums), *product = read_value(e, dw);
        assert_true(sum[0] == ROWS && sum[WIDTH - 1] == ROWS && product[0] == ROWS && product[WIDTH * WIDTH - 1] == ROWS);
        free(sum);
        free(product);
    }
    exec_free(e);
}

/* A tree whose selection is kept: what is left out is not missed. Products may be made by other kernels then. */
static void test_left_out_gradients_change_nothing(void **state)
{
    (void)state;
    NEEDS_GPU;
    struct optimizer_settings s = small_settings();
    s.select = (struct selection){.k = 3, .sum = true, .every = 3, .seed = 42};
    struct program *p = training_towards(small_models[SMALL_K1], &s, PASS_SET_ALL, NULL, NULL, (struct precision_goal){.narrow = BF16});
    struct program *q = training_towards(small_models[SMALL_K1], &s, PASS_SET_ALL, NULL, NULL, (struct precision_goal){.narrow = BF16});
    for (int i = 0; i < q->n_ops; i++)
        q->ops[i].leave = NULL;
    struct trained a = train_program(p, &small_models[SMALL_K1], gpu, false), b = train_program(q, &small_models[SMALL_K1], gpu, false);
    for (int i = 0; i < BESIDE_STEPS; i++)
        assert_near(a.metrics[i][METRIC_LOSS], b.metrics[i][METRIC_LOSS], NARROW_BESIDE[BF16] * b.metrics[0][METRIC_LOSS],
                    "the loss with gradients left out");
    exec_free(a.exec);
    exec_free(b.exec);
}

static void test_two_runs_are_equal(void **state) { (void)state; NEEDS_GPU; check_same(gpu, false); }
static void test_graphs_change_no_bit(void **state) { (void)state; NEEDS_GPU; check_same(gpu_plain, false); }
static void test_measuring_changes_no_bit(void **state) { (void)state; NEEDS_GPU; check_same(gpu, true); }

static void test_narrow_curves(void **state)
{
    (void)state;
    NEEDS_GPU;
    for (int m = SMALL_GPT; m <= SMALL_LLAMA; m++)
        for (enum dtype type = BF16; type <= F16; type++) {
            struct safetensors s = read_fixture("train", small_models[m].name);
            exec_free(check_curve(narrow(small_models[m], type, false), &s, gpu, NARROW_CURVE[type]));
            safetensors_release(&s);
        }
}

/* Beside PyTorch under autocast to bf16. */
static void test_autocast_curves(void **state)
{
    (void)state;
    NEEDS_GPU;
    for (int m = SMALL_GPT; m <= SMALL_LLAMA; m++) {
        struct safetensors s = read_fixture("train", small_models[m].name), curve = read_fixture("curve", small_models[m].name);
        exec_free(check_curve_of(narrow(small_models[m], BF16, false), &s, &curve, gpu, AUTOCAST_CURVE));
        safetensors_release(&s);
        safetensors_release(&curve);
    }
}

static void test_narrow_beside_the_reference(void **state)
{
    (void)state;
    NEEDS_GPU;
    struct backend *reference = new_backend(1, true);
    for (int m = 0; m < SMALL_MODELS; m++)
        for (enum dtype type = BF16; type <= F16; type++) {
            const struct small_model *model = &small_models[m];
            struct trained a = train_program(narrow(*model, type, true), model, reference, false);
            struct trained b = train_program(narrow(*model, type, true), model, gpu, false);
            for (int i = 0; i < BESIDE_STEPS; i++)
                assert_near(b.metrics[i][METRIC_LOSS], a.metrics[i][METRIC_LOSS], NARROW_BESIDE[type] * a.metrics[0][METRIC_LOSS],
                            dtype_name(type));
            exec_free(a.exec);
            exec_free(b.exec);
        }
    reference->free(reference);
}

/* Again, without graphs, and with lanes. */
static void test_narrow_runs_are_equal(void **state)
{
    (void)state;
    NEEDS_GPU;
    for (int m = 0; m < SMALL_MODELS; m++)
        for (int other = 0; other < 3; other++) {
            struct program *p = narrow(small_models[m], BF16, true);
            struct trained a = train_program(narrow(small_models[m], BF16, true), &small_models[m], gpu, false);
            p->linger = other == 2 ? 12 : 0;
            struct trained b = train_program(p, &small_models[m], other == 1 ? gpu_plain : gpu, false);
            assert_memory_equal(a.metrics, b.metrics, BESIDE_STEPS * METRICS * sizeof(float));
            assert_same_weights(a.exec, b.exec, 0, small_models[m].name);
            exec_free(a.exec);
            exec_free(b.exec);
        }
}

/* ---- times ---- */

/* Ops may go side by side, and some begin early, piece by piece; but what the step ends with ends last, and none is without time. */
static void test_times_are_of_the_step(void **state)
{
    (void)state;
    NEEDS_GPU;
    struct trained t = train(&small_models[SMALL_LLAMA], gpu, true);     /* the last step was measured */
    const struct program *p = exec_program(t.exec);
    const struct lane_time *last = NULL;
    int64_t first = INT64_MAX;
    int forward_first = -1;
    for (int i = 0; i < p->n_ops; i++) {
        const struct lane_time *x = exec_times(t.exec, i);
        if (p->ops[i].phase == PHASE_SETUP)
            continue;
        assert_true(x && x->end_ns >= x->start_ns && x->start_ns > 0);
        first = x->start_ns < first ? x->start_ns : first;
        last = !last || x->end_ns > last->end_ns ? x : last;
        forward_first = forward_first < 0 && p->ops[i].phase == PHASE_FORWARD ? i : forward_first;
        if (p->ops[i].kind == OP_CLIP)
            assert_true(x->start_ns >= exec_times(t.exec, forward_first)->end_ns);
        if (p->ops[i].kind == OP_ADAMW_ALL)
            assert_true(x->start_ns >= exec_times(t.exec, forward_first)->end_ns && x->end_ns > x->start_ns);
    }
    assert_true(last->end_ns - first > 10000 && last->end_ns - first < 1000000000);     /* more than 10 us, less than a second */
    exec_free(t.exec);
}

/* ---- memory ---- */

static void test_memory_is_zeroed_and_refused(void **state)
{
    (void)state;
    NEEDS_GPU;
    enum { BYTES = 5 << 20 };                   /* more than one stage of an upload, and not a multiple */
    struct error err;
    unsigned char *host = plain_alloc(BYTES + 3), *back = plain_alloc(BYTES + 3);
    char *memory = gpu->alloc(gpu, BYTES + 3);
    assert_non_null(memory);
    assert_true((uintptr_t)memory % 64 == 0);
    assert_ok(gpu->download(gpu, back, memory, BYTES + 3, &err), err);
    for (int i = 0; i < BYTES + 3; i++)
        assert_true(back[i] == 0);
    for (int i = 0; i < BYTES + 3; i++)
        host[i] = (unsigned char)(i * 31 + i / 257);
    assert_ok(gpu->upload(gpu, memory, host, BYTES + 3, &err), err);
    memset(host, 0, BYTES + 3);                 /* the caller's memory is his own again */
    assert_ok(gpu->download(gpu, back, memory, BYTES + 3, &err), err);
    for (int i = 0; i < BYTES + 3; i++)
        assert_true(back[i] == (unsigned char)(i * 31 + i / 257));
    gpu->free_memory(gpu, memory, BYTES + 3);
    assert_null(gpu->alloc(gpu, (size_t)1 << 50));
    assert_ok(gpu->finish(gpu, &err), err);     /* nothing failed but that */
    assert_true(gpu->available(gpu) > 0 && gpu->available(gpu) < (size_t)1 << 50);
    free(host);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_and_refused),
        cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_postln),
        cmocka_unit_test(test_training_gpt),
        cmocka_unit_test(test_training_llama),
        cmocka_unit_test(test_beside_the_cpu),
        cmocka_unit_test(test_ops_are_left_out),
        cmocka_unit_test(test_left_out_gradients_change_nothing),
        cmocka_unit_test(test_two_runs_are_equal),
        cmocka_unit_test(test_graphs_change_no_bit),
        cmocka_unit_test(test_lanes_change_no_bit), cmocka_unit_test(test_no_memory_changes_no_bit),
        cmocka_unit_test(test_pieces_change_no_bit),
        cmocka_unit_test(test_batches_ahead_change_no_bit),
        cmocka_unit_test(test_measuring_changes_no_bit),
        cmocka_unit_test(test_narrow_curves),
        cmocka_unit_test(test_autocast_curves),
        cmocka_unit_test(test_narrow_beside_the_reference),
        cmocka_unit_test(test_narrow_runs_are_equal),
        cmocka_unit_test(test_times_are_of_the_step),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
