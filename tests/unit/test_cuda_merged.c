/* Ops on a GPU that do the work of others: GELU and its gradient at the end of products, sums over rows on the way, biases, gradients of
 * weights, products of nodes of one level and ropes together. Prepared together and each by itself they give the same numbers. Needs a GPU. */
#include "support/on_gpu.h"

struct size { int64_t rows, width, inner; };

static value_id number_matrix(struct program *p, const char *name, enum dtype t, int64_t rows, int64_t columns)
{
    return program_add_value(p, name, VALUE_INPUT, t, shape_of(2, rows, columns));
}

static value_id numbers(struct program *p, const char *name, int64_t n) { return program_add_value(p, name, VALUE_INPUT, F32, shape_of(1, n)); }

static value_id result(struct program *p, enum dtype t, value_id v)
{
    p->values[v].dtype = t;
    return v;
}

/* gelu(x w^T + bias) and its slope; dy = dz back; du = dy * slope; where they are asked for, the sums over rows of du. */
static struct program *feed_forward(struct size s, bool summed)
{
    struct program *p = program_new("feed-forward");
    const value_id x = number_matrix(p, "x", BF16, s.rows, s.width), w = number_matrix(p, "w", BF16, s.inner, s.width);
    const value_id bias = numbers(p, "bias", s.inner);
    const value_id dz = number_matrix(p, "dz", BF16, s.rows, s.width), back = number_matrix(p, "back", BF16, s.width, s.inner);
    p->phase = PHASE_FORWARD;
    result(p, BF16, program_emit(p, OP_LINEAR_GELU, (struct op_attrs){.parts = 2}, "y", 3, x, w, bias));
    const value_id slope = result(p, BF16, p->ops[0].out[1]);
    const value_id dy = result(p, BF16, program_emit(p, OP_MATMUL, (struct op_attrs){0}, "dy", 2, dz, back));
    const value_id du = result(p, BF16, program_emit(p, OP_MUL, (struct op_attrs){0}, "du", 2, dy, slope));
    if (summed)
        program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "sums", 2, du, bias);
    return p;
}

/* du = dy * slope and its sums. */
static struct program *product_of_two(enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("product");
    const value_id dy = number_matrix(p, "dy", t, rows, width), slope = number_matrix(p, "slope", t, rows, width), like = numbers(p, "like", width);
    p->phase = PHASE_FORWARD;
    const value_id du = result(p, t, program_emit(p, OP_MUL, (struct op_attrs){0}, "du", 2, dy, slope));
    program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "sums", 2, du, like);
    return p;
}

/* The gradient of a layer norm, added to another one, and the sums over its rows. */
static struct program *norm(enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("norm");
    const value_id dy = number_matrix(p, "dy", t, rows, width), x = number_matrix(p, "x", t, rows, width), gain = numbers(p, "gain", width);
    const value_id mean = numbers(p, "mean", rows), rstd = numbers(p, "rstd", rows), more = number_matrix(p, "more", t, rows, width);
    p->phase = PHASE_FORWARD;
    const value_id dx = result(p, t, program_emit(p, OP_LAYERNORM_GRAD, (struct op_attrs){0}, "dx", 6, dy, x, gain, mean, rstd, more));
    program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, "sums", 2, dx, gain);
    return p;
}

/* The gradient of what several products have read, and of the norm that it was. */
static struct program *projected_norm(enum dtype t, int parts, struct size s)
{
    struct program *p = program_new("projected norm");
    value_id in[6];
    for (int i = 0; i < parts; i++)
        in[i] = number_matrix(p, (const char *const[]){"dq", "dk", "dv"}[i], t, s.rows, s.inner);
    for (int i = 0; i < parts; i++)
        in[parts + i] = number_matrix(p, (const char *const[]){"q", "k", "v"}[i], t, s.inner, s.width);
    const value_id x = number_matrix(p, "x", t, s.rows, s.width), more = number_matrix(p, "more", t, s.rows, s.width);
    const value_id gain = numbers(p, "gain", s.width), rstd = numbers(p, "rstd", s.rows);
    p->phase = PHASE_FORWARD;
    const value_id dy = parts == 2 ? program_emit(p, OP_PROJECT_GRAD, (struct op_attrs){.parts = 2}, "dy", 4, in[0], in[1], in[2], in[3])
                                   : program_emit(p, OP_PROJECT_GRAD, (struct op_attrs){.parts = 3}, "dy", 6, in[0], in[1], in[2], in[3], in[4], in[5]);
    result(p, t, dy);
    result(p, t, program_emit(p, OP_RMSNORM_GRAD, (struct op_attrs){0}, "dx", 5, dy, x, gain, rstd, more));
    return p;
}

/* Sums over the rows of three matrices. */
static struct program *three_sums(enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("sums");
    const value_id like = numbers(p, "like", width);
    value_id x[3];
    for (int i = 0; i < 3; i++)
        x[i] = number_matrix(p, (const char *const[]){"q", "k", "v"}[i], t, rows, width);
    p->phase = PHASE_FORWARD;
    for (int i = 0; i < 3; i++)
        program_emit(p, OP_SUM_LEADING, (struct op_attrs){0}, (const char *const[]){"dq", "dk", "dv"}[i], 2, x[i], like);
    return p;
}

/* Two products with biases. */
static struct program *biased(enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("biases");
    const value_id x = number_matrix(p, "x", t, rows, width), w = number_matrix(p, "w", t, width, width), v = number_matrix(p, "v", t, width, width);
    const value_id first = numbers(p, "first", width), second = numbers(p, "second", width);
    p->phase = PHASE_FORWARD;
    const value_id y = result(p, t, program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "y", 3, x, w, first));
    result(p, t, program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "z", 3, y, v, second));
    return p;
}

static void write_numbers(const struct bound *b, value_id v, uint32_t seed)
{
    const struct value *value = &b->program->values[v];
    const int64_t n = shape_count(value->shape);
    float *wide = plain_alloc((size_t)n * sizeof *wide);
    void *host = plain_alloc(value_bytes(value));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        wide[i] = ((float)(seed >> 8) * 0x1p-23f - 1) * 0.25f;
    }
    if (dtype_is_narrow(value->dtype))
        narrow_floats(host, wide, n, value->dtype);
    else
        memcpy(host, wide, (size_t)n * sizeof *wide);
    gpu_write(b->backend, b->memory[v], host, value_bytes(value));
    free(host);
    free(wide);
}

static float *read_numbers(const struct bound *b, value_id v)
{
    const struct value *value = &b->program->values[v];
    void *host = plain_alloc(value_bytes(value));
    gpu_read(b->backend, host, b->memory[v], value_bytes(value));
    float *wide = widened(host, shape_count(value->shape), value->dtype);
    free(host);
    return wide;
}

static void assert_close(const char *name, const float *is, const float *should, int64_t n, double tolerance)
{
    double most = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(should[i]));
        off = fmax(off, fabs((double)is[i] - should[i]));
        if (!isfinite(is[i]))
            fail_msg("number %lld of %s is %g", (long long)i, name, is[i]);
    }
    if (!(most > 0 && off <= tolerance * most))
        fail_msg("%s is off by %g, and the largest is %g", name, off, most);
}

/* Which outputs are compared: those of all ops that are not written over. */
static bool is_compared(const struct bound *b, value_id v)
{
    bool last = b->program->values[v].kind != VALUE_INPUT;
    for (value_id w = v + 1; w < b->program->n_values; w++)
        last &= b->memory[w] != b->memory[v];
    return last;
}

struct merged {
    const char *kernel;             /* of the last op, when all are prepared together */
    int in_place;                   /* the op that writes where its first input is; -1: none */
    value_id kept_otherwise;        /* a value that is something else then; NO_VALUE: none */
    double tolerance;
};

/* n inputs of the first op, and as many behind them, lie evenly apart. Returns their memory, or NULL where n is 0. */
static void *lay_evenly(struct bound *b, int n)
{
    const struct op *op = &b->program->ops[0];
    size_t bytes = 0;
    for (int i = 0; i < 2 * n; i++)
        bytes += value_bytes(&b->program->values[op->in[i]]);
    char *memory = n ? gpu_alloc(b->backend, bytes) : NULL, *at = memory;
    for (int i = 0; i < 2 * n; i++) {
        b->memory[op->in[i]] = at;
        at += value_bytes(&b->program->values[op->in[i]]);
    }
    return memory;
}

/* Prepared together, ops do each other's work, which the name of the last one's kernel tells; each by itself they do not. A second run
 * of all is a graph, and must give the same bits. even: see lay_evenly. */
static void check_merged_evenly(struct program *p, struct merged m, int even)
{
    const int last = p->n_ops - 1;
    struct prepared *each[BOUND_OPS];
    struct bound b;
    float *should[BOUND_VALUES] = {0};
    bind(&b, gpu, p);
    void *evenly = lay_evenly(&b, even);
    if (m.in_place >= 0)
        b.memory[p->ops[m.in_place].out[0]] = b.memory[p->ops[m.in_place].in[0]];
    for (int i = 0; i <= last; i++)
        each[i] = prepare(&b, i, i + 1);
    struct prepared *all = prepare(&b, 0, last + 1);
    assert_string_equal(gpu->about(all, last).kernel, m.kernel);
    for (int run = 0; run < 3; run++) {
        for (value_id v = 0; v < p->n_values; v++)
            write_numbers(&b, v, (uint32_t)v + 1);
        for (int i = 0; i <= last && run == 0; i++)
            gpu_run(gpu, each[i], 1);
        if (run > 0)
            gpu_run(gpu, all, last + 1);
        for (value_id v = 0; v < p->n_values; v++) {
            if (!is_compared(&b, v) || v == m.kept_otherwise)
                continue;
            float *is = read_numbers(&b, v);
            if (run > 0)
                assert_close(p->values[v].name, is, should[v], shape_count(p->values[v].shape), run == 1 ? m.tolerance : 0);
            free(should[v]);
            should[v] = is;
        }
    }
    for (value_id v = 0; v < p->n_values; v++)
        free(should[v]);
    for (int i = 0; i <= last; i++)
        gpu->release(gpu, each[i]);
    gpu->release(gpu, all);
    if (evenly)
        gpu->free_memory(gpu, evenly, 0);
    unbind(&b);
    program_free(p);
}

static void check_merged(struct program *p, struct merged m) { check_merged_evenly(p, m, 0); }

static void check_feed_forward(struct size s, bool summed, const char *kernel)
{
    struct program *p = feed_forward(s, summed);
    check_merged(p, (struct merged){kernel, 2, p->ops[0].out[1], 0x1p-6});
}

/* Both round to bf16, the merged ones once less. */
static void test_gelu_at_the_end(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_feed_forward((struct size){4096, 512, 2048}, false, "merged");
    check_feed_forward((struct size){8192, 256, 2048}, false, "gelu_slope");
    check_feed_forward((struct size){300, 72, 136}, false, "merged");
}

/* Sums of the same numbers, in another order; of GELU's slope, of numbers that are rounded once less. */
static void test_sums_on_the_way(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct { enum dtype type; int64_t width; } matrices[] = {{F32, 384}, {F32, 2048}, {BF16, 128}, {BF16, 384},
                                                                          {BF16, 392}, {BF16, 1024}, {BF16, 2048}, {F16, 384}};
    check_feed_forward((struct size){8192, 256, 2048}, true, "merged");
    check_feed_forward((struct size){8195, 256, 1800}, true, "merged");
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        const enum dtype t = matrices[i].type;
        const int64_t width = matrices[i].width, rows = (1 << 20) / width + 37;
        check_merged(product_of_two(t, rows, width), (struct merged){"merged", 0, NO_VALUE, 1e-5});
        check_merged(norm(t, rows, width), (struct merged){"merged", 0, NO_VALUE, 1e-5});
        check_merged(three_sums(t, rows, width), (struct merged){"merged", -1, NO_VALUE, 1e-5});
    }
}

/* The first of them makes the biases of both narrow. */
static void test_biases_together(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_merged(biased(BF16, 8192, 1024), (struct merged){"cublaslt", -1, NO_VALUE, 0});
    check_merged(biased(F16, 8192, 1024), (struct merged){"cublaslt", -1, NO_VALUE, 0});
    check_merged(biased(F32, 2048, 1024), (struct merged){"cublaslt", -1, NO_VALUE, 0});
}

/* Where it does not pay, or rows are not of whole packs, everybody does his own work. */
static void test_small_sums_stay(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_merged(norm(BF16, 1000, 384), (struct merged){"sum_leading", 0, NO_VALUE, 0});
    check_merged(three_sums(BF16, 3000, 389), (struct merged){"sum_leading", -1, NO_VALUE, 0});
}

/* Gradients of weights of several shapes, dw = dy^T x in f32 of bf16. */
static struct program *weight_gradients(int n, const struct size *sizes)
{
    struct program *p = program_new("weight gradients");
    value_id dy[4], x[4];
    char name[16];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "dy%d", i);
        dy[i] = number_matrix(p, name, BF16, sizes[i].rows, sizes[i].width);
        snprintf(name, sizeof name, "x%d", i);
        x[i] = number_matrix(p, name, BF16, sizes[i].rows, sizes[i].inner);
    }
    p->phase = PHASE_BACKWARD;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "dw%d", i);
        program_emit(p, OP_MATMUL, (struct op_attrs){.trans_a = true}, name, 2, dy[i], x[i]);
    }
    return p;
}

static void test_weight_gradients_together(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct size few[] = {{1024, 512, 512}, {1024, 512, 512}, {1024, 512, 520}};
    static const struct size many[] = {{1000, 512, 712}, {1000, 1408, 512}, {1000, 72, 8}, {1000, 136, 200}};
    static const struct size back[] = {{1000, 136, 200}, {1000, 72, 8}, {1000, 512, 712}, {1000, 1408, 512}};
    static const struct size deep[] = {{9000, 128, 136}, {9000, 256, 128}};
    if (!is_hopper())
        skip();
    check_merged(weight_gradients(3, few), (struct merged){"hopper", -1, NO_VALUE, 2e-5});
    check_merged(weight_gradients(4, many), (struct merged){"hopper", -1, NO_VALUE, 2e-5});
    check_merged(weight_gradients(4, back), (struct merged){"hopper", -1, NO_VALUE, 2e-5});
    check_merged(weight_gradients(2, deep), (struct merged){"hopper", -1, NO_VALUE, 2e-5});
}

/* ---- nodes of one level, that are one call ---- */

enum { NODES = 3 };

/* The last of them does the work of all. */
static void check_row(struct program *p, const char *kernel, double tolerance)
{
    struct bound b;
    bind(&b, gpu, p);
    struct prepared *all = prepare(&b, 0, p->n_ops);
    for (int i = 0; i < p->n_ops - 1; i++)
        assert_string_equal(gpu->about(all, i).kernel, "merged");
    gpu->release(gpu, all);
    unbind(&b);
    check_merged(p, (struct merged){kernel, -1, NO_VALUE, tolerance});
}

static value_id node_matrix(struct program *p, const char *name, int node, int part, int64_t rows, int64_t columns)
{
    return number_matrix(p, arena_printf(&p->arena, "%s.%d.%d", name, node, part), BF16, rows, columns);
}

static void add_node(struct program *p, enum op_kind kind, struct op_attrs attrs, int node, int n, const value_id *in)
{
    const int at = program_add_op(p, kind, attrs, arena_printf(&p->arena, "y.%d", node), n, in);
    assert_true(at >= 0);
    for (int i = 0; i < p->ops[at].n_out && !attrs.trans_a; i++)
        p->values[p->ops[at].out[i]].dtype = BF16;
    p->ops[at].call = 1;
}

/* What a node's input is multiplied by: weights, or, for their gradients, the other one's. */
static value_id weight_of(struct program *p, enum op_kind kind, struct op_attrs attrs, int node, int part, int64_t rows, int64_t width, int64_t inner)
{
    if (attrs.trans_a)
        return node_matrix(p, "w", node, part, rows, width);
    if (kind == OP_MATMUL && !attrs.trans_b)
        return node_matrix(p, "w", node, part, width, inner);
    return node_matrix(p, "w", node, part, inner, width);
}

/* Of one kind; children of one parent read the same, or each has an input of its own. */
static struct program *row_of_nodes(enum op_kind kind, struct op_attrs attrs, bool siblings, int64_t rows, int64_t width, int64_t inner)
{
    struct program *p = program_new("a level");
    const int parts = kind == OP_PROJECT || kind == OP_PROJECT_GRAD ? attrs.parts : 1;
    const bool biased = kind == OP_PROJECT || kind == OP_LINEAR_GELU || (kind == OP_MATMUL && attrs.trans_b);
    value_id in[NODES][9], shared = NO_VALUE;
    int n = 0;
    for (int i = 0; i < NODES; i++) {
        n = 0;
        for (int k = 0; k < (kind == OP_PROJECT_GRAD ? parts : 1); k++)
            in[i][n++] = shared = siblings && i ? shared : node_matrix(p, "x", i, k, rows, kind == OP_PROJECT_GRAD || attrs.trans_a ? inner : width);
        for (int k = 0; k < parts; k++)
            in[i][n++] = weight_of(p, kind, attrs, i, k, rows, width, inner);
        for (int k = 0; k < parts && biased; k++)
            in[i][n++] = numbers(p, arena_printf(&p->arena, "b.%d.%d", i, k), inner);
    }
    p->phase = PHASE_FORWARD;
    for (int i = 0; i < NODES; i++)
        add_node(p, kind, attrs, i, n, in[i]);
    return p;
}

/* The last of them makes all; products of 16 bits are rounded once, either way. */
static void test_nodes_of_a_level(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const struct { enum op_kind kind; struct op_attrs attrs; bool siblings; int64_t rows, width, inner; } cases[] = {
        {OP_MATMUL, {.trans_b = true}, false, 5000, 256, 128},
        {OP_MATMUL, {.trans_b = true}, true, 5000, 128, 264},
        {OP_MATMUL, {0}, false, 5003, 256, 136},
        {OP_MATMUL, {.trans_a = true}, false, 9000, 128, 256},
        {OP_MATMUL, {.trans_a = true}, true, 9000, 128, 256},
        {OP_PROJECT, {.parts = 3}, true, 4100, 128, 128},
        {OP_PROJECT, {.parts = 3}, false, 4100, 72, 136},
        {OP_PROJECT_GRAD, {.parts = 3}, false, 4100, 128, 128},
        {OP_PROJECT_GRAD, {.parts = 2}, false, 4100, 136, 200},
        {OP_LINEAR_GELU, {.parts = 2}, false, 5000, 128, 256},
        {OP_LINEAR_GELU, {.parts = 1}, true, 5000, 128, 264},
    };
    if (!is_hopper())
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_row(row_of_nodes(cases[i].kind, cases[i].attrs, cases[i].siblings, cases[i].rows, cases[i].width, cases[i].inner), "hopper",
                  cases[i].attrs.trans_a ? 2e-5 : 0x1p-6);
}

/* Norms and sweeps of nodes, in one type. */
static struct program *row_of_sweeps(enum op_kind kind, enum dtype t, int64_t rows, int64_t width)
{
    struct program *p = program_new("a level");
    value_id in[NODES][4];
    int n = 0;
    for (int i = 0; i < NODES; i++) {
        n = 0;
        in[i][n++] = number_matrix(p, arena_printf(&p->arena, "x.%d", i), t, rows, width);
        if (kind == OP_ADD || kind == OP_MUL || kind == OP_ADD_LAYERNORM || kind == OP_GELU_GRAD)
            in[i][n++] = number_matrix(p, arena_printf(&p->arena, "more.%d", i), t, rows, width);
        for (int k = 0; k < 2 && (kind == OP_ADD_LAYERNORM || kind == OP_LAYERNORM); k++)
            in[i][n++] = numbers(p, arena_printf(&p->arena, "beside.%d.%d", i, k), width);
    }
    p->phase = PHASE_FORWARD;
    for (int i = 0; i < NODES; i++) {
        const int at = program_add_op(p, kind, (struct op_attrs){.eps = 1e-5f}, arena_printf(&p->arena, "y.%d", i), n, in[i]);
        for (int k = 0; k < p->ops[at].n_out; k++)
            if (shape_count(p->values[p->ops[at].out[k]].shape) == rows * width)
                p->values[p->ops[at].out[k]].dtype = t;
        p->ops[at].call = 1;
    }
    return p;
}

/* Each of them has the same bits as by itself. */
static void test_sweeps_of_a_level(void **state)
{
    (void)state;
    NEEDS_GPU;
    static const enum op_kind kinds[] = {OP_ADD, OP_MUL, OP_GELU, OP_GELU_GRAD, OP_LAYERNORM, OP_ADD_LAYERNORM};
    static const struct { enum dtype type; int64_t rows, width; } sizes[] = {{BF16, 1000, 128}, {F32, 37, 129}, {F16, 501, 264}, {BF16, 3, 9001}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_row(row_of_sweeps(kinds[i], sizes[k].type, sizes[k].rows, sizes[k].width), op_info(kinds[i])->name, 0);
}

/* Queries and keys, of fewer heads, turned one after the other. */
static struct program *two_ropes(int64_t heads)
{
    struct program *p = program_new("ropes");
    value_id x[2];
    const value_id cosine = program_add_value(p, "cos", VALUE_INPUT, F32, shape_of(2, 100, 16));
    const value_id sine = program_add_value(p, "sin", VALUE_INPUT, F32, shape_of(2, 100, 16));
    x[0] = program_add_value(p, "q", VALUE_INPUT, BF16, shape_of(3, 3, 100, 4 * 32));
    x[1] = program_add_value(p, "k", VALUE_INPUT, BF16, shape_of(3, 3, 100, heads * 32));
    p->phase = PHASE_FORWARD;
    result(p, BF16, program_emit(p, OP_ROPE, (struct op_attrs){.heads = 4}, "q.rope", 3, x[0], cosine, sine));
    result(p, BF16, program_emit(p, OP_ROPE, (struct op_attrs){.heads = (int)heads}, "k.rope", 3, x[1], cosine, sine));
    return p;
}

static void test_ropes_together(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_merged(two_ropes(4), (struct merged){"rope", -1, NO_VALUE, 1e-9});
    check_merged(two_ropes(1), (struct merged){"rope", -1, NO_VALUE, 1e-9});
}

/* The sum of products is never stored where the norm's gradient adds them up: its memory stays as it was. */
static void check_projected(enum dtype t, int parts, struct size s)
{
    struct program *p = projected_norm(t, parts, s);
    const value_id dy = p->ops[0].out[0];
    struct bound b;
    bind(&b, gpu, p);
    void *evenly = lay_evenly(&b, parts);
    struct prepared *all = prepare(&b, 0, 2);
    assert_string_equal(gpu->about(all, 0).kernel, "together");
    for (value_id v = 0; v < p->n_values; v++)
        write_numbers(&b, v, (uint32_t)v + 1);
    float *before = read_numbers(&b, dy);
    gpu_run(gpu, all, 2);
    float *after = read_numbers(&b, dy);
    assert_memory_equal(before, after, (size_t)shape_count(p->values[dy].shape) * sizeof *before);
    free(before);
    free(after);
    gpu->release(gpu, all);
    gpu->free_memory(gpu, evenly, 0);
    unbind(&b);
    check_merged_evenly(p, (struct merged){"rmsnorm_grad", -1, dy, 0}, parts);
}

/* The same numbers, added up in the same order. */
static void test_sums_of_products(void **state)
{
    (void)state;
    NEEDS_GPU;
    check_projected(BF16, 3, (struct size){1024, 512, 512});
    check_projected(BF16, 2, (struct size){1000, 512, 1408});
    check_projected(BF16, 3, (struct size){4099, 128, 256});
    check_projected(BF16, 2, (struct size){1000, 1024, 512});
    check_projected(F16, 3, (struct size){1001, 392, 512});
    check_projected(F16, 2, (struct size){1001, 768, 512});
    check_projected(F16, 3, (struct size){2003, 256, 512});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gelu_at_the_end),
        cmocka_unit_test(test_sums_on_the_way),
        cmocka_unit_test(test_biases_together),
        cmocka_unit_test(test_small_sums_stay),
        cmocka_unit_test(test_weight_gradients_together),
        cmocka_unit_test(test_nodes_of_a_level),
        cmocka_unit_test(test_sweeps_of_a_level),
        cmocka_unit_test(test_ropes_together),
        cmocka_unit_test(test_sums_of_products),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
