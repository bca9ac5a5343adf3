/* Every op: tuned kernels against the reference on every case of the table, in place too, and gradients against finite
 * differences. */
#include "support/check.h"

#include "ops/cpu/cpu.h"
#include "ops/cpu/kernel.h"
#include "passes/passes.h"
#include "support/op_compare.h"

/* Tuned against reference: the largest difference, as a share of the largest number of the output. What is not listed
 * is copied or rounded once, and must be equal to the last bit. */
static const double tolerances[OP_KINDS] = {
    [OP_EMBED_GRAD] = 1e-6,     [OP_MATMUL] = 2e-6,         [OP_SUM_LEADING] = 2e-6,  [OP_GELU] = 4e-7,
    [OP_GELU_GRAD] = 1e-6,      [OP_SILU] = 4e-7,           [OP_SILU_GRAD] = 1e-6,    [OP_LAYERNORM] = 2e-6,
    [OP_LAYERNORM_GRAD] = 4e-6, [OP_RMSNORM] = 1e-6,        [OP_RMSNORM_GRAD] = 4e-6, [OP_ROPE_TABLE] = 1e-7,
    [OP_ROPE] = 3e-7,           [OP_ATTN_SCORES] = 2e-6,    [OP_ATTN_MIX] = 2e-6,     [OP_ATTN_MIX_T] = 2e-6,
    [OP_SOFTMAX] = 1e-6,        [OP_SOFTMAX_GRAD] = 1e-6,   [OP_LOG_SOFTMAX] = 5e-7,  [OP_LOG_SOFTMAX_GRAD] = 1e-6,
    [OP_ATTENTION] = 2e-6,      [OP_ATTENTION_GRAD] = 5e-6, [OP_ATTEND_KV] = 2e-6,
    [OP_ACCUMULATE] = 2e-7,     [OP_SUM_SQUARES] = 1e-6,    [OP_ADAMW] = 1e-6,          [OP_SQUARE_BLOCKS] = 1e-6,
    [OP_ADD_LAYERNORM] = 2e-6,  [OP_ADD_RMSNORM] = 1e-6,    [OP_LINEAR_GELU] = 1e-5,
    [OP_PROJECT] = 2e-6,        [OP_PROJECT_GRAD] = 2e-6,   [OP_SWIGLU] = 5e-7,       [OP_SWIGLU_GRAD] = 1e-6,
    [OP_LINEAR_LOSS] = 8e-6,    [OP_ADAMW_ALL] = 1e-6,
};

/* Finite differences: step, and the tolerance as a share of the gradient's length and in absolute terms (losses are
 * single precision: their rounding alone is about 1e-7 / step). */
static const double FD_STEP = 0.02, FD_SHARE = 2e-3, FD_ABSOLUTE = 4e-5;
enum { FD_ELEMENTS = 6, FD_DIRECTIONS = 3, FD_LARGEST = 3000 };

enum { THREADS = 3 };
static struct backend *reference, *tuned[THREADS];

static int make_backends(void **state)
{
    (void)state;
    struct error err;
    for (int i = 0; i < THREADS; i++)
        if (cpu_backend_new(&tuned[i], i + 1, false, &err))
            return -1;
    return cpu_backend_new(&reference, 1, true, &err) ? -1 : 0;
}

static int free_backends(void **state)
{
    (void)state;
    for (int i = 0; i < THREADS; i++)
        tuned[i]->free(tuned[i]);
    reference->free(reference);
    return 0;
}

/* --- tuned against reference ------------------------------------------------------------------------------------ */

static struct plain run_variant(struct program *p, const struct op_case *c, struct variant v, int way)
{
    struct plain x = plain_new(p, v.backend);
    x.variant = way;
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&x, i, c, i);
    for (int i = 0; i < case_inputs(c) && v.nan; i++)
        if (p->values[i].dtype == F32) {
            *(float *)x.memory[i] = NAN;
            break;
        }
    if (v.alias >= 0)
        plain_alias(&x, p->ops[0].out[0], p->ops[0].in[v.alias]);
    plain_run_op(&x, &p->ops[0]);
    return x;
}

/* Runs the variant, compares it with the expected result and, bit by bit, with a second run of itself. */
static void check_variant(struct program *p, const struct op_case *c, struct variant v, const struct plain *should)
{
    struct plain a = run_variant(p, c, v, 0), b = run_variant(p, c, v, 0);
    compare(c, v, &a, should, tolerances);
    assert_same_bits(c, v, &a, &b);
    plain_release(&a);
    plain_release(&b);
}

static void check_case(const struct op_case *c, bool nan)
{
    struct program *p = program_of_case(c);
    struct plain should = run_variant(p, c, (struct variant){reference, -1, nan}, 0);
    for (int alias = -1; alias < p->ops[0].n_in; alias++) {
        if (alias >= 0 && !may_alias(p, alias))
            continue;
        for (int t = 0; t < THREADS; t++)
            check_variant(p, c, (struct variant){tuned[t], alias, nan}, &should);
        const struct variant in_place = {reference, alias, nan};
        struct plain x = run_variant(p, c, in_place, 0);
        assert_same_bits(c, in_place, &x, &should);
        plain_release(&x);
    }
    plain_release(&should);
    program_free(p);
}

static void test_tuned_equals_reference(void **state)
{
    (void)state;
    for (int i = 0; i < OP_CASES; i++)
        check_case(&op_cases[i], false);
}

/* In every way that autotune may choose. */
static void test_every_way_equals_reference(void **state)
{
    (void)state;
    for (int i = 0; i < OP_CASES; i++) {
        const struct op_case *c = &op_cases[i];
        struct program *p = program_of_case(c);
        const struct variant by = {tuned[THREADS - 1], -1, false};
        const char *const *ways = cpu_choose(by.backend, p, &p->ops[0])->variants;
        struct plain should = run_variant(p, c, (struct variant){reference, -1, false}, 0);
        for (int way = 1; ways && ways[way]; way++) {
            struct plain is = run_variant(p, c, by, way);
            compare(c, by, &is, &should, tolerances);
            plain_release(&is);
        }
        plain_release(&should);
        program_free(p);
    }
}

/* A number that is not one shows up in the same places: a broken step must never look healthy. */
static void test_nan_spreads_as_in_reference(void **state)
{
    (void)state;
    for (int i = 0; i < OP_CASES; i++)
        check_case(&op_cases[i], true);
}

static void test_every_op_has_a_case_and_kernels(void **state)
{
    (void)state;
    for (int kind = 0; kind < OP_KINDS; kind++) {
        int n = 0;
        for (int i = 0; i < OP_CASES; i++)
            n += (int)op_cases[i].kind == kind;
        if (!n)
            fail_msg("op %s has no case", op_info(kind)->name);
        const struct op op = {.kind = kind};
        if (!cpu_choose(reference, NULL, &op))
            fail_msg("op %s has no reference kernel", op_info(kind)->name);
    }
}

/* Same work, other numbers of threads: element-wise kernels, those split by column or row must not differ at all. */
static void test_element_wise_kernels_ignore_threads(void **state)
{
    (void)state;
    static const enum op_kind alike[] = {OP_EMBED, OP_EMBED_GRAD, OP_ADD, OP_MUL, OP_GELU, OP_GELU_GRAD,
                                         OP_SILU, OP_SILU_GRAD, OP_LAYERNORM, OP_RMSNORM, OP_ROPE, OP_SOFTMAX,
                                         OP_LOG_SOFTMAX, OP_DROPOUT, OP_NLL_GRAD, OP_ADD_LAYERNORM, OP_ADD_RMSNORM,
                                         OP_SWIGLU, OP_SWIGLU_GRAD, OP_ATTENTION, OP_ATTEND_KV, OP_SUM_SQUARES, OP_MEAN, OP_SCALE};
    for (int i = 0; i < OP_CASES; i++)
        for (size_t k = 0; k < sizeof alike / sizeof *alike; k++) {
            if (op_cases[i].kind != alike[k])
                continue;
            struct program *p = program_of_case(&op_cases[i]);
            struct plain one = run_variant(p, &op_cases[i], (struct variant){tuned[0], -1, false}, 0);
            for (int t = 1; t < THREADS; t++) {
                const struct variant v = {tuned[t], -1, false};
                struct plain more = run_variant(p, &op_cases[i], v, 0);
                assert_same_bits(&op_cases[i], v, &more, &one);
                plain_release(&more);
            }
            plain_release(&one);
            program_free(p);
        }
}

/* --- what threads touch ------------------------------------------------------------------------------------------ */

/* Bytes of a value that belong to the share: all of it where it is not divided. */
static struct span share_bytes(const struct value *v, bool divided, const struct share *s)
{
    const int64_t bytes = (int64_t)value_bytes(v), row = divided ? bytes / s->of : bytes;
    return divided ? (struct span){s->rows.lo * row, s->rows.hi * row} : (struct span){0, bytes};
}

/* All but what is within becomes NaN. */
static void spoil(char *memory, size_t bytes, struct span within)
{
    memset(memory, 0xff, (size_t)within.lo);
    memset(memory + within.hi, 0xff, bytes - (size_t)within.hi);
}

enum { UNTOUCHED = 0x5a };          /* not what a NaN gives when it spreads */
static void assert_untouched(const char *memory, int64_t from, int64_t to, const char *what, const struct op_case *c)
{
    for (int64_t i = from; i < to; i++)
        if (memory[i] != UNTOUCHED)
            fail_msg("%s, case %d: a thread writes byte %lld of %s, which is not in its share", op_info(c->kind)->name, (int)(c - op_cases), (long long)i, what);
}

/* What one thread wrote: in its share what all threads together write there, as far as it writes it (heads of one sample may have several), nothing elsewhere,
 * and nothing of what is summed up later. */
static void check_outputs(const struct op_case *c, const struct plain *x, const struct plain *whole, const struct share *s, uint32_t later)
{
    const struct op *op = &x->program->ops[0];
    for (int i = 0; i < op->n_out; i++) {
        const struct value *v = &x->program->values[op->out[i]];
        const char *is = x->memory[op->out[i]], *should = whole->memory[op->out[i]];
        const struct span mine = later >> i & 1 ? (struct span){0, 0} : share_bytes(v, s->out >> i & 1, s);
        for (int64_t j = mine.lo; j < mine.hi; j++)
            if (is[j] != should[j] && is[j] != UNTOUCHED)
                fail_msg("%s, case %d: byte %lld of output %d depends on what is not in the thread's share", op_info(c->kind)->name, (int)(c - op_cases), (long long)j, i);
        assert_untouched(is, 0, mine.lo, "an output", c);
        assert_untouched(is, mine.hi, (int64_t)value_bytes(v), "an output", c);
    }
}

/* One thread alone, with nothing but NaN in what its share leaves out; false: it has no share. */
static bool run_share(struct program *p, const struct op_case *c, struct backend *b, int thread, const struct plain *whole)
{
    struct op *op = &p->ops[0];
    struct plain x = plain_new(p, b);
    void *in[CASE_INPUTS], *out[16];
    const struct kernel *k = cpu_choose(b, p, op);
    const size_t bytes = k->scratch ? k->scratch(p, op, b->lanes) : 0;
    char *scratch = plain_alloc(bytes);
    for (int i = 0; i < op->n_out; i++)
        out[i] = memset(x.memory[op->out[i]], UNTOUCHED, value_bytes(&p->values[op->out[i]]));
    const struct kernel_thread t = {thread, b->lanes, NULL};
    const struct kernel_call call = {.kernel = k, .program = p, .op = op, .in = in, .out = out, .scratch = scratch, .scratch_bytes = bytes,
                                     .blocks = cpu_blocks(k, p, op, b->lanes)};
    const struct share s = k->share(&call, &t);
    for (int i = 0; i < op->n_in; i++) {
        fill_input(&x, i, c, i);
        in[i] = x.memory[op->in[i]];
        if (s.of)
            spoil(in[i], value_bytes(&p->values[op->in[i]]), share_bytes(&p->values[op->in[i]], s.in >> i & 1, &s));
    }
    memset(scratch, UNTOUCHED, bytes);
    if (s.of) {
        const int64_t each = (int64_t)call_scratch_each(&call, b->lanes);
        k->run(&call, &t);
        check_outputs(c, &x, whole, &s, cpu_sums(k, p, op, b->lanes) ? k->summed : 0);
        assert_untouched(scratch, 0, thread * each, "scratch", c);
        assert_untouched(scratch, (thread + 1) * each, (int64_t)bytes, "scratch", c);
    }
    free(scratch);
    plain_release(&x);
    return s.of > 0;
}

/* Meetings are left out where shares allow it: they must be what kernels touch. */
static void test_threads_touch_their_share(void **state)
{
    (void)state;
    int found[OP_KINDS] = {0};
    for (int i = 0; i < OP_CASES; i++)
        for (int n = 1; n < THREADS; n++) {
            struct program *p = program_of_case(&op_cases[i]);
            const struct kernel *k = cpu_choose(tuned[n], p, &p->ops[0]);
            if (k->share) {
                struct plain whole = run_variant(p, &op_cases[i], (struct variant){tuned[n], -1, false}, 0);
                for (int t = 0; t <= n; t++)
                    found[k->op] += run_share(p, &op_cases[i], tuned[n], t, &whole);
                plain_release(&whole);
            }
            program_free(p);
        }
    static const enum op_kind shared[] = {OP_ADD, OP_MUL, OP_LAYERNORM, OP_ADD_LAYERNORM, OP_MATMUL, OP_PROJECT, OP_PROJECT_GRAD, OP_ATTENTION, OP_ATTENTION_GRAD, OP_LINEAR_GELU,
                                           OP_LAYERNORM_GRAD, OP_RMSNORM_GRAD, OP_SUM_LEADING, OP_ROPE, OP_SWIGLU, OP_SWIGLU_GRAD};
    for (size_t k = 0; k < sizeof shared / sizeof *shared; k++)
        if (!found[shared[k]])
            fail_msg("no case of %s has shares", op_info(shared[k])->name);
}

/* --- gradients by finite differences ---------------------------------------------------------------------------- */

/* y (.., n) times a new parameter (5, n). */
static value_id spread(struct program *p, value_id y, const char *name)
{
    const struct shape shape = shape_of(2, (int64_t)5, shape_last(p->values[y].shape));
    const value_id matrix = program_add_parameter(p, name, shape, ROLE_MATRIX, INIT_NORMAL, 1);
    return program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "spread", 2, y, matrix);
}

/* What a loss may hang on: the first output, or a sum over all of an op whose rule looks at all. */
static value_id outputs_joined(struct program *p, int at)
{
    const struct op op = p->ops[at];
    if (op.kind != OP_PROJECT)
        return op.out[0];
    value_id sum = spread(p, op.out[0], "join0");
    for (int i = 1; i < op.n_out; i++) {
        char name[16];
        snprintf(name, sizeof name, "join%d", i);
        sum = program_emit(p, OP_ADD, (struct op_attrs){0}, "joined", 2, sum, spread(p, op.out[i], name));
    }
    return sum;
}

/* y -> mul with a random parameter (and a product where y has few columns) -> log-softmax -> loss. */
static void scalarise(struct program *p, value_id y, value_id *targets)
{
    const struct shape shape = p->values[y].shape;
    const value_id weight = program_add_parameter(p, "weight", shape, ROLE_MATRIX, INIT_NORMAL, 1);
    y = program_emit(p, OP_MUL, (struct op_attrs){0}, "weighted", 2, y, weight);
    if (shape_last(shape) < 5 && shape.rank > 1)
        y = spread(p, y, "matrix");
    y = program_emit(p, OP_LOG_SOFTMAX, (struct op_attrs){0}, "logp", 1, y);
    *targets = program_add_value(p, "targets", VALUE_INPUT, I32, shape_of(1, shape_rows(p->values[y].shape)));
    p->loss = program_emit(p, OP_NLL, (struct op_attrs){0}, "loss", 2, y, *targets);
}

/* A program that ends in a loss, with the inputs that have a gradient as parameters, and its memory. */
struct fd {
    struct program *program;
    struct plain plain;
    const struct op_case *c;
};

static struct program *differentiable(const struct op_case *c, value_id *targets)
{
    struct program *p = program_new("gradient");
    value_id in[CASE_INPUTS];
    const int n = case_inputs(c);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        if (content_has_gradient(c->in[i].content))
            in[i] = program_add_parameter(p, name, c->in[i].shape, ROLE_MATRIX, INIT_NORMAL, 1);
        else
            in[i] = program_add_value(p, name, VALUE_INPUT, content_is_int(c->in[i].content) ? I32 : F32,
                                      c->in[i].shape);
    }
    const int at = program_add_op(p, c->kind, c->attrs, "out", n, in);
    assert_true(at >= 0);
    *targets = NO_VALUE;
    value_id y = outputs_joined(p, at);
    if (n > 1 && c->in[1].content == MASK)      /* -inf needs a softmax before anything else */
        y = program_emit(p, OP_SOFTMAX, (struct op_attrs){0}, "finite", 1, y);
    if (c->kind == OP_NLL || c->kind == OP_LINEAR_LOSS)
        p->loss = y;
    else
        scalarise(p, y, targets);
    return p;
}

/* The parameters that are not inputs of the case. */
static void fill_parameters(struct plain *x, value_id first)
{
    uint64_t stream = 0;
    for (value_id v = first; v < x->program->n_values; v++)
        if (x->program->values[v].kind == VALUE_PARAMETER)
            rng_fill_normal(x->memory[v], shape_count(x->program->values[v].shape), 1, 99, ++stream);
}

static struct fd fd_new(const struct op_case *c)
{
    value_id targets;
    struct error err;
    struct fd f = {.c = c, .program = differentiable(c, &targets)};
    assert_ok(pass_autodiff(f.program, &err), err);
    assert_ok(program_validate(f.program, &err), err);
    f.plain = plain_new(f.program, reference);
    for (int i = 0; i < case_inputs(c); i++)
        fill_input(&f.plain, i, c, i);
    fill_parameters(&f.plain, case_inputs(c));
    if (targets != NO_VALUE)
        fill_ints(f.plain.memory[targets], &(struct case_input){TARGETS, f.program->values[targets].shape}, 99, 3);
    plain_run(&f.plain, PHASE_FORWARD, PHASE_BACKWARD);
    return f;
}

static double loss_of(struct fd *f)
{
    plain_run(&f->plain, PHASE_FORWARD, PHASE_FORWARD);
    return *(float *)f->plain.memory[f->program->loss];
}

static double loss_at(struct fd *f, value_id v, const float *at, const float *direction, double distance)
{
    float *x = f->plain.memory[v];
    const int64_t n = shape_count(f->program->values[v].shape);
    for (int64_t i = 0; i < n; i++)
        x[i] = isfinite(at[i]) ? (float)(at[i] + distance * direction[i]) : at[i];
    const double loss = loss_of(f);
    memcpy(x, at, (size_t)n * sizeof *x);
    return loss;
}

/* The derivative along a direction of length 1, by central differences of fourth order. */
static double difference(struct fd *f, value_id v, const float *at, const float *direction)
{
    const double h = FD_STEP;
    const double near = loss_at(f, v, at, direction, h) - loss_at(f, v, at, direction, -h);
    const double far = loss_at(f, v, at, direction, 2 * h) - loss_at(f, v, at, direction, -2 * h);
    return (8 * near - far) / (12 * h);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void check_direction(struct fd *f, value_id v, const float *at, const float *direction, const float *grad,
                            const char *what)
{
    const int64_t n = shape_count(f->program->values[v].shape);
    const double is = dot(grad, direction, n), should = difference(f, v, at, direction);
    if (!(fabs(is - should) <= FD_ABSOLUTE + FD_SHARE * sqrt(dot(grad, grad, n))))
        fail_msg("%s, case %d, input %s: the derivative along %s is %.7g; finite differences give %.7g",
                 op_info(f->c->kind)->name, (int)(f->c - op_cases), f->program->values[v].name, what, is, should);
}

static void normalise(float *x, int64_t n)
{
    const double length = sqrt(dot(x, x, n));
    for (int64_t i = 0; i < n && length > 0; i++)
        x[i] = (float)(x[i] / length);
}

/* Along the gradient itself, along random directions, and along a few single elements. */
static void check_parameter(struct fd *f, value_id v)
{
    const int64_t n = shape_count(f->program->values[v].shape);
    const size_t bytes = (size_t)n * sizeof(float);
    loss_of(f);                                 /* a fused loss gives its gradients anew with every forward */
    float *grad = memcpy(plain_alloc(bytes), f->plain.memory[f->program->values[v].grad], bytes);
    float *at = memcpy(plain_alloc(bytes), f->plain.memory[v], bytes), *d = plain_alloc(bytes);
    for (int64_t i = 0; i < n; i++)
        assert_true(isfinite(at[i]) ? isfinite(grad[i]) : grad[i] == 0);
    memcpy(d, grad, bytes);
    normalise(d, n);
    check_direction(f, v, at, d, grad, "the gradient");
    for (int k = 0; k < FD_DIRECTIONS; k++) {
        rng_fill_normal(d, n, 1, 5, (uint64_t)k);
        for (int64_t i = 0; i < n; i++)
            d[i] = isfinite(at[i]) ? d[i] : 0;
        normalise(d, n);
        check_direction(f, v, at, d, grad, "a random direction");
    }
    for (int k = 0; k < FD_ELEMENTS; k++) {
        memset(d, 0, bytes);
        d[rng_below(6, (uint64_t)v, (uint64_t)k, (uint64_t)n)] = 1;
        check_direction(f, v, at, d, grad, "one element");
    }
    free(grad);
    free(at);
    free(d);
}

static bool has_gradient(enum op_kind kind)
{
    static const enum op_kind kinds[] = {OP_EMBED, OP_MATMUL, OP_ADD, OP_MUL, OP_GELU, OP_SILU, OP_LAYERNORM,
                                         OP_RMSNORM, OP_ROPE, OP_ATTN_SCORES, OP_ATTN_MIX, OP_SOFTMAX, OP_LOG_SOFTMAX,
                                         OP_DROPOUT, OP_NLL, OP_ADD_LAYERNORM, OP_ADD_RMSNORM, OP_LINEAR_GELU,
                                         OP_PROJECT, OP_SWIGLU, OP_LINEAR_LOSS, OP_ATTENTION, OP_MEAN, OP_SCALE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

/* Models multiply by transposed weights only, and only that form has a rule. */
static bool is_differentiable(const struct op_case *c)
{
    const bool form = c->kind != OP_MATMUL || (!c->attrs.trans_a && c->attrs.trans_b);
    const bool scaled = c->kind == OP_LINEAR_LOSS && case_inputs(c) > 3;        /* its gradients are not of the loss alone */
    return has_gradient(c->kind) && form && !scaled && shape_count(c->in[0].shape) <= FD_LARGEST;
}

static void test_gradients(void **state)
{
    (void)state;
    int checked[OP_KINDS] = {0};
    for (int i = 0; i < OP_CASES; i++) {
        if (!is_differentiable(&op_cases[i]))
            continue;
        struct fd f = fd_new(&op_cases[i]);
        for (value_id v = 0; v < f.program->n_values; v++)
            if (f.program->values[v].kind == VALUE_PARAMETER)
                check_parameter(&f, v);
        plain_release(&f.plain);
        program_free(f.program);
        checked[op_cases[i].kind]++;
    }
    for (int kind = 0; kind < OP_KINDS; kind++)
        if (has_gradient(kind) && !checked[kind])
            fail_msg("the gradient of op %s was not checked", op_info(kind)->name);
}

/* The list above misses no op that has a rule: the others are refused. */
static void test_ops_without_gradient_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < OP_CASES; i++) {
        const struct op_case *c = &op_cases[i];
        if (has_gradient(c->kind) || op_info(c->kind)->n_updated || c->kind == OP_HOST_READ ||
            !content_has_gradient(c->in[0].content))
            continue;
        value_id targets;
        struct program *p = differentiable(c, &targets);
        struct error err;
        assert_int_equal(pass_autodiff(p, &err), BAD_INPUT);
        assert_says(&err, op_info(c->kind)->name, "no gradient rule", NULL);
        program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_a_case_and_kernels),
        cmocka_unit_test(test_tuned_equals_reference),
        cmocka_unit_test(test_every_way_equals_reference),
        cmocka_unit_test(test_nan_spreads_as_in_reference),
        cmocka_unit_test(test_element_wise_kernels_ignore_threads),
        cmocka_unit_test(test_threads_touch_their_share),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_ops_without_gradient_are_refused),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
