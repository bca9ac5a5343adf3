/* The model of regions against PyTorch, which scripts/make-regions-fixture.py has asked sample by sample: rows with padding must give the
 * same. And the walks that it learns from. */
#include "config/config.h"
#include "data/data_int.h"
#include "support/kernels.h"
#include "support/optimized.h"
#include "support/torch.h"

/* As in the script. */
enum { SAMPLES = 4, LONGEST = 13, FEW_STEPS = 12 };
static const struct small_model small_regions = {
    "regions", SAMPLES, {.arch = ARCH_REGIONS, .vocab = REGION_IDS, .dim = 20, .layers = 2, .heads = 5, .kv_heads = 5, .ffn = 36, .seq = LONGEST,
                         .segments = REGION_TYPES, .positions = 17, .given_positions = true, .rope_base = 10000, .norm_eps = 1e-5}};

/* Rows of LONGEST words of a tensor as rows of `seq`, what is behind them filled with `fill`. */
static void write_rows(struct exec *e, value_id v, const struct tensor *t, int64_t seq, int64_t width, int32_t fill)
{
    int32_t *rows = xcalloc((size_t)(SAMPLES * seq * width), sizeof *rows);
    const int32_t *from = t->data;
    for (int64_t i = 0; i < SAMPLES * seq * width; i++) {
        const int64_t row = i / (seq * width), at = i % (seq * width);
        rows[i] = at < LONGEST * width ? from[row * LONGEST * width + at] : fill;
    }
    exec_write(e, v, rows);
    free(rows);
}

static void write_samples(struct exec *e, const struct safetensors *s, int64_t seq)
{
    const struct program *p = exec_program(e);
    int32_t positions[SAMPLES * 32];
    for (int64_t i = 0; i < SAMPLES * seq; i++)
        positions[i] = (int32_t)(i % seq);
    exec_write(e, p->positions, positions);
    write_rows(e, p->tokens, tensor(s, "", "tokens"), seq, 1, -1);
    write_rows(e, p->segments, tensor(s, "", "segments"), seq, 1, 0);
    write_rows(e, p->targets, tensor(s, "", "targets"), seq, 1, -1);
    write_rows(e, p->types, tensor(s, "", "types"), seq, 1, -1);
    write_rows(e, p->features, tensor(s, "", "features"), seq, REGION_FEATURES, 0);
}

/* The same samples, two of them in one row. */
enum { PACKED_ROWS = 3, PACKED_SEQ = 16 };
static const struct { int row, at; } places[SAMPLES] = {{0, 0}, {1, 0}, {1, 6}, {2, 0}};

static void write_packed_rows(struct exec *e, value_id v, const struct tensor *t, const int32_t *lengths, int64_t width, int32_t fill)
{
    int32_t rows[PACKED_ROWS * PACKED_SEQ * REGION_FEATURES];
    for (int64_t i = 0; i < PACKED_ROWS * PACKED_SEQ * width; i++)
        rows[i] = fill;
    for (int k = 0; k < SAMPLES; k++)
        memcpy(rows + (places[k].row * PACKED_SEQ + places[k].at) * width, (const int32_t *)t->data + k * LONGEST * width,
               (size_t)(lengths[k] * width) * sizeof *rows);
    exec_write(e, v, rows);
}

static void write_packed(struct exec *e, const struct safetensors *s)
{
    const struct program *p = exec_program(e);
    const int32_t *lengths = tensor(s, "", "lengths")->data;
    int32_t positions[PACKED_ROWS * PACKED_SEQ] = {0}, starts[PACKED_ROWS * PACKED_SEQ];
    for (int i = 0; i < PACKED_ROWS * PACKED_SEQ; i++)
        starts[i] = i % PACKED_SEQ;                 /* padding sees itself */
    for (int k = 0; k < SAMPLES; k++)
        for (int i = 0; i < lengths[k]; i++) {
            positions[places[k].row * PACKED_SEQ + places[k].at + i] = i;
            starts[places[k].row * PACKED_SEQ + places[k].at + i] = places[k].at;
        }
    exec_write(e, p->positions, positions);
    exec_write(e, p->starts, starts);
    write_packed_rows(e, p->tokens, tensor(s, "", "tokens"), lengths, 1, -1);
    write_packed_rows(e, p->segments, tensor(s, "", "segments"), lengths, 1, 0);
    write_packed_rows(e, p->targets, tensor(s, "", "targets"), lengths, 1, -1);
    write_packed_rows(e, p->types, tensor(s, "", "types"), lengths, 1, -1);
    write_packed_rows(e, p->features, tensor(s, "", "features"), lengths, REGION_FEATURES, 0);
}

static struct program *packed_program(void)
{
    struct config_model m = small_regions.config;
    const struct optimizer_settings settings = small_settings();
    const struct model_options options = {.batch = PACKED_ROWS, .loss = true, .dropout = true, .packed = SAMPLES};
    struct program *p = NULL;
    struct error err;
    m.length = PACKED_SEQ;
    assert_ok(model_build(&p, &m, options, &err), err);
    assert_ok(pass_training_step(p, &settings, &err), err);
    return p;
}

static struct program *program_of(int64_t seq, pass_set set)
{
    struct small_model m = small_regions;
    const struct optimizer_settings settings = small_settings();
    m.config.length = seq;
    return set ? optimized_training(m, &settings, set, NULL, NULL) : small_training(m, &settings);
}

/* seq 0: packed */
static void check(struct backend *b, int64_t seq, pass_set set)
{
    struct safetensors s = read_fixture("model", "regions");
    struct exec *e = new_exec(seq ? program_of(seq, set) : packed_program(), b);
    const struct program *p = exec_program(e);
    if (!set)
        assert_int_equal(write_parameters(e, &s), count_prefix(&s, "param."));
    else
        write_parameters(e, &s);
    if (seq)
        write_samples(e, &s, seq);
    else
        write_packed(e, &s);
    exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    const double loss = *(const float *)tensor(&s, "", "loss")->data;
    assert_near(exec_scalar(e, p->loss), loss, 2 * LOSS * loss, "the loss");
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            compare(e, p->values[i].grad, tensor(&s, "grad.", p->values[i].name), GRADIENT);
    exec_free(e);
    safetensors_release(&s);
}

static void test_against_torch(void **state)
{
    (void)state;
    for (int i = 0; i < KERNELS; i++)
        check(kernels[i], LONGEST, 0);
}

/* Longer rows change nothing: padding reaches neither the loss nor a gradient. */
static void test_padding_changes_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < KERNELS; i++)
        check(kernels[i], 16, 0);
}

static void test_packing_changes_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < KERNELS; i++)
        check(kernels[i], 0, 0);
}

static void test_with_passes(void **state)
{
    (void)state;
    const pass_set passes = one_pass("flash-attention") | one_pass("fuse-qkv") | one_pass("fuse-residual-norm") | one_pass("fuse-bias-gelu") |
                            one_pass("fuse-loss") | one_pass("hoist-constants");
    for (int i = 0; i < KERNELS; i++)
        check(kernels[i], 16, passes);
}

static void test_training(void **state)
{
    (void)state;
    struct safetensors s = read_fixture("model", "regions");
    const float *losses = tensor(&s, "", "losses")->data;
    for (int i = 0; i < KERNELS; i++) {
        struct exec *e = new_exec(program_of(LONGEST, 0), kernels[i]);
        write_parameters(e, &s);
        write_samples(e, &s, LONGEST);
        for (int step = 0; step < FEW_STEPS; step++) {
            exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
            assert_near(read_named(e, "host.loss"), losses[step], CURVE * losses[0], "the loss of a step");
        }
        exec_free(e);
    }
    safetensors_release(&s);
}

/* ---- the model and the data that are shipped ---- */

static struct config shipped(void)
{
    struct config c;
    struct error err;
    assert_ok(config_load(&c, HONE_FIXTURES "/../../configs/regions-b1024.yaml", NULL, 0, &err), err);
    return c;
}

static void test_sizes(void **state)
{
    (void)state;
    const struct config c = shipped();
    struct config_model m = c.model;
    struct program *p = NULL;
    struct error err;
    m.vocab = REGION_IDS;
    assert_ok(model_build(&p, &m, (struct model_options){.batch = 2, .loss = true}, &err), err);
    assert_int_equal(program_parameters(p), 227656);
    program_free(p);
}

enum { SEQ = 163 };
struct filled {
    int32_t tokens[SEQ], targets[SEQ], segments[SEQ], types[SEQ];
    float features[SEQ][REGION_FEATURES];
    int64_t length;
};

static struct filled sample_of(const struct dataset *d, enum split split, int64_t i)
{
    struct filled f;
    struct error err;
    struct sample s = {.tokens = f.tokens, .targets = f.targets, .segments = f.segments, .types = f.types, .features = f.features[0]};
    assert_ok(dataset_fill(d, split, i, &s, &err), err);
    f.length = s.length;
    return f;
}

static int cell_of(const float *f) { return (int)lroundf(f[0] * 8) * REGION_SIDE + (int)lroundf(f[1] * 8); }

/* A transition goes where its action leads; returns the goal where it was found, else -1. */
static int check_transition(const float *f)
{
    static const int rows[] = {0, -1, 1, 0, 0}, columns[] = {0, 0, 0, -1, 1};
    const int from = cell_of(f), to = cell_of(f + 8);
    int action = -1;
    for (int a = 0; a < REGION_ACTIONS; a++)
        if (f[2 + a] == 1) {
            assert_int_equal(action, -1);
            action = a;
        }
    assert_true(action >= 0);
    int row = from / REGION_SIDE + rows[action], column = from % REGION_SIDE + columns[action];
    row = row < 0 ? 0 : row > 8 ? 8 : row;
    column = column < 0 ? 0 : column > 8 ? 8 : column;
    assert_int_equal(to, row * REGION_SIDE + column);
    assert_true(f[7] == 0 || f[7] == 1);
    return f[7] == 1 ? to : -1;
}

static int check_sample(const struct filled *f)
{
    int goal = -1;
    assert_true(f->length >= 84 && f->length <= SEQ);
    for (int64_t i = 0; i < SEQ; i++) {
        const bool starts = i == 0 || i == 82, ends = i == 81, last = i == f->length - 1;
        assert_int_equal(f->targets[i] >= 0, last);
        assert_int_equal(f->types[i], last ? 0 : -1);
        assert_int_equal(f->segments[i], starts ? 1 : ends ? 2 : 0);
        assert_true(f->targets[i] < REGION_ACTIONS);
        if (starts || ends || last || i >= f->length) {
            for (int k = 0; k < REGION_FEATURES; k++)
                assert_true(f->features[i][k] == 0);
            assert_true(starts ? f->tokens[i] == 0 : ends ? f->tokens[i] == 1 : last ? f->tokens[i] >= 2 && f->tokens[i] < REGION_IDS
                                                                                     : f->tokens[i] == -1);
            continue;
        }
        assert_int_equal(f->tokens[i], -1);
        const int found = check_transition(f->features[i]);
        assert_true(found < 0 || goal < 0 || found == goal);        /* a sample has one goal */
        goal = found >= 0 ? found : goal;
    }
    return goal;
}

static void test_walks(void **state)
{
    (void)state;
    const struct config c = shipped();
    struct dataset *d;
    struct error err;
    bool goals[2][REGION_CELLS] = {{false}};
    int64_t lengths = 0;
    assert_ok(dataset_open(&d, &c, &err), err);
    assert_int_equal(dataset_samples(d, SPLIT_TRAIN), 73LL * 100 * 11 * 80);
    assert_int_equal(dataset_samples(d, SPLIT_VAL), 8LL * 100 * 11 * 80);
    for (int split = 0; split < 2; split++)
        for (int64_t i = 0; i < 400; i++) {
            const struct filled f = sample_of(d, (enum split)split, i), again = sample_of(d, (enum split)split, i);
            const int goal = check_sample(&f);
            assert_memory_equal(&f, &again, sizeof f);
            if (split == SPLIT_TRAIN)
                assert_int_equal(dataset_length(d, i), f.length);
            lengths += f.length;
            if (goal >= 0)
                goals[split][goal] = true;
        }
    assert_true(lengths / 800 > 120 && lengths / 800 < 127);
    int found = 0;
    for (int g = 0; g < REGION_CELLS; g++) {
        assert_false(goals[0][g] && goals[1][g]);
        found += goals[1][g];
    }
    assert_int_equal(found, 8);
    dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_torch), cmocka_unit_test(test_padding_changes_nothing), cmocka_unit_test(test_packing_changes_nothing),
        cmocka_unit_test(test_with_passes),
        cmocka_unit_test(test_training), cmocka_unit_test(test_sizes), cmocka_unit_test(test_walks),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
