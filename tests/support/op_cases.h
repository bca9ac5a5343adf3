/* One table of op cases: kind, inputs, attributes. It serves the comparison of tuned with reference kernels and the check
 * of gradients by finite differences. Sizes are odd on purpose: single elements and rows, below and above the width of a
 * vector, not its multiples, grouped heads, padding, masks. */
#ifndef HONE_TESTS_OP_CASES_H
#define HONE_TESTS_OP_CASES_H

#include "program/program.h"

enum content {
    NOTHING,            /* ends the list of inputs */
    NORMAL,             /* numbers that a gradient is taken by */
    MASKED,             /* the same, with -inf where the column is above the row */
    FIXED,              /* numbers that are not differentiated */
    MASK,               /* 0, and -inf where the column is above the row */
    POSITIVE,
    LARGE,              /* one number: 1024 */
    HIGH,               /* 4 and more: the largest of some scores, as statistics of attention have it. Weights that are far above 1, as no
                           softmax gives them, would be more than f16 holds on the way to a gradient that it does hold */
    PROBABILITIES,      /* rows that sum to one */
    LOG_PROBABILITIES,
    IDS,                /* i32 below 5: tables of the cases have at least five rows */
    TARGETS,            /* i32 below 5, about every third is padding */
    PADDING,            /* i32, all padding */
    STARTS,             /* i32 (B, T): where the sample of each place begins, in rows of samples of different lengths */
    PLACES,             /* i32 (B, T): from 7 b on in row b, one after the other; about every fourth is -1 */
    FIRST,              /* one i32: 1 */
    COUNTER,            /* one i32 */
    NOT_A_NUMBER,       /* one NaN */
    SOME,               /* 0, 1 and 0.5 in turn: a mask of groups */
};

struct case_input {
    enum content content;
    struct shape shape;
};

enum { CASE_INPUTS = 26 };

struct op_case {
    enum op_kind kind;
    struct op_attrs attrs;
    struct case_input in[CASE_INPUTS];
};

#define SHAPE(...) {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}
#define X(...)     {NORMAL, SHAPE(__VA_ARGS__)}
#define OF(c, ...) {c, SHAPE(__VA_ARGS__)}
#define SCALAR     {FIXED, {0}}
#define ONE(c)     {c, {0}}

#define HEADS(h, k, s) {.heads = h, .kv_heads = k, .scale = s}
#define CAUSAL(h, k, s) {.heads = h, .kv_heads = k, .scale = s, .causal = true}
#define DROPPED(h, k, s, c, p) {.heads = h, .kv_heads = k, .scale = s, .causal = c, .prob = p, .seed = 7, .stream = 5}
#define PACKED(h, k, s, p, at) {.heads = h, .kv_heads = k, .scale = s, .causal = true, .packed = true, .prob = p, .seed = 7, .stream = 5, .first = at}
#define QKV(b, t, h, k, d)      X(b, t, (h) * (d)), X(b, t, (k) * (d)), X(b, t, (k) * (d))
#define KEPT(s, c, w) X(s, c, w), X(s, c, w)
#define QKV_GRAD(b, t, h, k, d) X(b, t, (h) * (d)), QKV(b, t, h, k, d), X(b, t, (h) * (d)), OF(HIGH, b, h, t), OF(POSITIVE, b, h, t)
#define ADAMW          {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f}
#define ADAMW_OF(...)                                                                                                 \
    {OP_ADAMW, ADAMW, {X(__VA_ARGS__), X(__VA_ARGS__), OF(POSITIVE, __VA_ARGS__), X(__VA_ARGS__), ONE(POSITIVE),       \
                       ONE(COUNTER), ONE(POSITIVE)}}

/* Parameters, moments and gradients of several tensors, their shapes in parentheses; then lr, step and factor. */
#define MANY(n)        {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .parts = n}
#define COPIED         {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .copies = 1}
#define MANY_COPIED(n, k) {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .parts = n, .copies = k}
#define SCALARS        ONE(POSITIVE), ONE(COUNTER), ONE(POSITIVE)
#define ROLE_1(c, a)          {c, SHAPE a}
#define ROLE_2(c, a, b)       ROLE_1(c, a), ROLE_1(c, b)
#define ROLE_5(c, a, b, d, e, f) ROLE_2(c, a, b), ROLE_2(c, d, e), ROLE_1(c, f)
#define SETS_1(a)             ROLE_1(NORMAL, a), ROLE_1(NORMAL, a), ROLE_1(POSITIVE, a), ROLE_1(NORMAL, a), SCALARS
#define SETS_2(...)           ROLE_2(NORMAL, __VA_ARGS__), ROLE_2(NORMAL, __VA_ARGS__), ROLE_2(POSITIVE, __VA_ARGS__), \
                              ROLE_2(NORMAL, __VA_ARGS__), SCALARS
#define SETS_5(...)           ROLE_5(NORMAL, __VA_ARGS__), ROLE_5(NORMAL, __VA_ARGS__), ROLE_5(POSITIVE, __VA_ARGS__), \
                              ROLE_5(NORMAL, __VA_ARGS__), SCALARS

/* Tensors of groups and units. A parameter of a case with a mask is in group (its place mod 4) - 1: see program_of_typed_case. */
static const struct op_member none_and_two[] = {{-1, 0}, {0, 0}, {1, 0}}, of_first[] = {{0, 0}}, of_second[] = {{1, 0}},
                              three_units[] = {{0, 0}, {0, 1}, {0, 0}},
                              mixed[] = {{3, 0}, {-1, 0}, {0, 2}, {0, 1}, {3, 0}, {0, 2}, {2, 5}};
#define GROUPS(n, list) {.masked = true, .n_members = n, .members = list}
#define SCORES(g, n, list) {.parts = g, .n_members = n, .members = list}
#define MASKED_OF(n, c) {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .parts = n, .copies = c, .masked = true, .k = 2}

static const struct op_member block_places[] = {{0, 1}, {1, 12}};
static const int64_t two_slices[] = {0, 1024, 2213};
static const struct op_member second_copied[] = {{-1, 1}};

static const struct op_case op_cases[] = {
    {OP_EMBED, {0}, {X(5, 1), OF(IDS, 1, 1)}},
    {OP_EMBED, {0}, {X(7, 17), OF(IDS, 3, 5)}},
    {OP_EMBED, {0}, {X(11, 130), OF(IDS, 2, 17)}},
    {OP_EMBED_GRAD, {0}, {X(5, 1), OF(IDS, 1, 1), X(1, 1, 1)}},
    {OP_EMBED_GRAD, {0}, {X(7, 17), OF(IDS, 3, 5), X(3, 5, 17)}},
    {OP_EMBED_GRAD, {0}, {X(9, 130), OF(IDS, 4, 33), X(4, 33, 130)}},
    {OP_EMBED_GRAD, {0}, {X(7, 24), OF(IDS, 3, 700), X(3, 700, 24)}},           /* so many ids that a GPU sorts them */
    {OP_EMBED_GRAD, {0}, {X(300, 17), OF(IDS, 3, 700), X(3, 700, 17)}},

    {OP_MATMUL, {.trans_b = true}, {X(1, 1), X(1, 1)}},
    {OP_MATMUL, {.trans_b = true}, {X(3, 5), X(17, 5)}},
    {OP_MATMUL, {.trans_b = true}, {X(3, 5), X(17, 5), X(17)}},
    {OP_MATMUL, {.trans_b = true}, {X(2, 9, 33), X(7, 33), X(7)}},
    {OP_MATMUL, {.trans_b = true}, {X(130, 17), X(33, 17), X(33)}},
    {OP_MATMUL, {.trans_b = true}, {X(1, 64), X(130, 64)}},
    {OP_MATMUL, {.trans_b = true}, {X(33, 1), X(5, 1), X(5)}},
    {OP_MATMUL, {0}, {X(5, 3), X(3, 17)}},
    {OP_MATMUL, {0}, {X(2, 3, 33), X(33, 130)}},
    {OP_MATMUL, {0}, {X(130, 33), X(33, 1)}},
    {OP_MATMUL, {.trans_a = true}, {X(33, 5), X(33, 17)}},
    {OP_MATMUL, {.trans_a = true}, {X(2, 17, 130), X(2, 17, 3)}},
    {OP_MATMUL, {.trans_a = true, .trans_b = true}, {X(17, 33), X(5, 17)}},
    /* deeper than one panel of the small product; more rows than it reads unpacked; large enough for BLAS in all parts */
    {OP_MATMUL, {.trans_b = true}, {X(17, 300), X(37, 300), X(37)}},
    {OP_MATMUL, {0}, {X(53, 519), X(519, 35)}},
    {OP_MATMUL, {.trans_a = true}, {X(270, 61), X(270, 19)}},
    {OP_MATMUL, {.trans_b = true}, {X(203, 131), X(151, 131), X(151)}},
    {OP_MATMUL, {0}, {X(203, 131), X(131, 151)}},
    {OP_MATMUL, {.trans_a = true}, {X(131, 203), X(131, 151)}},

    /* rows of whole 16 bytes in every type */
    {OP_MATMUL, {.trans_b = true}, {X(64, 64), X(96, 64), X(96)}},
    {OP_MATMUL, {0}, {X(2, 32, 96), X(96, 64)}},
    {OP_MATMUL, {.trans_a = true}, {X(128, 64), X(128, 32)}},

    {OP_SUM_LEADING, {0}, {X(1, 1), X(1)}},
    {OP_SUM_LEADING, {0}, {X(3, 5), X(5)}},
    {OP_SUM_LEADING, {0}, {X(2, 9, 33), X(33)}},
    {OP_SUM_LEADING, {0}, {X(7, 3, 130), X(3, 130)}},
    {OP_SUM_LEADING, {0}, {X(1, 17), X(17)}},
    {OP_SUM_LEADING, {0}, {X(2100, 136), X(136)}},
    {OP_SUM_LEADING, {0}, {X(2100, 35), X(35)}},

    {OP_ADD, {0}, {X(3, 1), X(3, 1)}},
    {OP_ADD, {0}, {X(17, 5), X(17, 5)}},
    {OP_ADD, {0}, {X(3, 7, 5), X(7, 5)}},
    {OP_ADD, {0}, {X(3, 33, 5), X(5)}},
    {OP_ADD, {0}, {X(5, 130), X(130)}},
    {OP_ADD, {0}, {X(2, 3, 17, 17), OF(MASK, 17, 17)}},
    {OP_MUL, {0}, {X(1, 3), X(1, 3)}},
    {OP_MUL, {0}, {X(17, 33), X(17, 33)}},
    {OP_MUL, {0}, {X(130), X(130)}},

    {OP_GELU, {0}, {X(1, 1)}},
    {OP_GELU, {0}, {X(5, 33)}},
    {OP_GELU, {0}, {X(3, 5, 130)}},
    {OP_GELU_GRAD, {0}, {X(3), X(3)}},
    {OP_GELU_GRAD, {0}, {X(17, 33), X(17, 33)}},
    {OP_SILU, {0}, {X(1, 1)}},
    {OP_SILU, {0}, {X(5, 33)}},
    {OP_SILU, {0}, {X(3, 5, 130)}},
    {OP_SILU_GRAD, {0}, {X(3), X(3)}},
    {OP_SILU_GRAD, {0}, {X(17, 33), X(17, 33)}},

    {OP_LAYERNORM, {.eps = 1e-5f}, {X(1, 3), X(3), X(3)}},
    {OP_LAYERNORM, {.eps = 1e-5f}, {X(5, 17), X(17), X(17)}},
    {OP_LAYERNORM, {.eps = 1e-5f}, {X(2, 3, 130), X(130), X(130)}},
    {OP_LAYERNORM_GRAD, {0}, {X(1, 3), X(1, 3), X(3), X(1), OF(POSITIVE, 1)}},
    {OP_LAYERNORM_GRAD, {0}, {X(5, 17), X(5, 17), X(17), X(5), OF(POSITIVE, 5)}},
    {OP_LAYERNORM_GRAD, {0}, {X(2, 33, 130), X(2, 33, 130), X(130), X(66), OF(POSITIVE, 66)}},
    {OP_LAYERNORM_GRAD, {0}, {X(1, 1), X(1, 1), X(1), X(1), OF(POSITIVE, 1), X(1, 1)}},
    {OP_LAYERNORM_GRAD, {0}, {X(1, 67), X(1, 67), X(67), X(1), OF(POSITIVE, 1), X(1, 67)}},
    {OP_LAYERNORM_GRAD, {0}, {X(2, 33, 130), X(2, 33, 130), X(130), X(66), OF(POSITIVE, 66), X(2, 33, 130)}},
    /* a norm's width decides how many threads of a GPU have a row, and how many rows go to more than one block */
    {OP_LAYERNORM, {.eps = 1e-5f}, {X(9, 64), X(64), X(64)}},
    {OP_LAYERNORM, {.eps = 1e-5f}, {X(5, 384), X(384), X(384)}},
    {OP_LAYERNORM, {.eps = 1e-5f}, {X(3, 768), X(768), X(768)}},
    {OP_LAYERNORM_GRAD, {0}, {X(300, 64), X(300, 64), X(64), X(300), OF(POSITIVE, 300), X(300, 64)}},
    {OP_LAYERNORM_GRAD, {0}, {X(70, 384), X(70, 384), X(384), X(70), OF(POSITIVE, 70)}},
    {OP_LAYERNORM_GRAD, {0}, {X(33, 768), X(33, 768), X(768), X(33), OF(POSITIVE, 33), X(33, 768)}},
    {OP_LAYERNORM_GRAD, {0}, {X(5, 2048), X(5, 2048), X(2048), X(5), OF(POSITIVE, 5)}},
    {OP_RMSNORM_GRAD, {0}, {X(140, 128), X(140, 128), X(128), OF(POSITIVE, 140), X(140, 128)}},
    {OP_RMSNORM_GRAD, {0}, {X(40, 512), X(40, 512), X(512), OF(POSITIVE, 40)}},
    {OP_RMSNORM_GRAD, {0}, {X(20, 1024), X(20, 1024), X(1024), OF(POSITIVE, 20)}},
    {OP_RMSNORM_GRAD, {0}, {X(3, 8200), X(3, 8200), X(8200), OF(POSITIVE, 3)}},
    {OP_RMSNORM, {.eps = 1e-6f}, {X(2, 8200), X(8200)}},
    {OP_RMSNORM, {.eps = 1e-6f}, {X(1, 3), X(3)}},
    {OP_RMSNORM, {.eps = 1e-6f}, {X(5, 17), X(17)}},
    {OP_RMSNORM, {.eps = 1e-6f}, {X(2, 3, 130), X(130)}},
    {OP_RMSNORM_GRAD, {0}, {X(1, 3), X(1, 3), X(3), OF(POSITIVE, 1)}},
    {OP_RMSNORM_GRAD, {0}, {X(5, 17), X(5, 17), X(17), OF(POSITIVE, 5)}},
    {OP_RMSNORM_GRAD, {0}, {X(2, 33, 130), X(2, 33, 130), X(130), OF(POSITIVE, 66)}},
    {OP_RMSNORM_GRAD, {0}, {X(1, 1), X(1, 1), X(1), OF(POSITIVE, 1), X(1, 1)}},
    {OP_RMSNORM_GRAD, {0}, {X(1, 67), X(1, 67), X(67), OF(POSITIVE, 1), X(1, 67)}},
    {OP_RMSNORM_GRAD, {0}, {X(2, 33, 130), X(2, 33, 130), X(130), OF(POSITIVE, 66), X(2, 33, 130)}},

    {OP_ROPE_TABLE, {.rows = 1, .cols = 1, .base = 10000}, {{0}}},
    {OP_ROPE_TABLE, {.rows = 33, .cols = 5, .base = 10000}, {{0}}},
    {OP_ROPE_TABLE, {.rows = 130, .cols = 17, .base = 500000}, {{0}}},
    {OP_ROPE, {.heads = 1}, {X(1, 1, 2), OF(FIXED, 1, 1), OF(FIXED, 1, 1)}},
    {OP_ROPE, {.heads = 3}, {X(2, 5, 18), OF(FIXED, 5, 3), OF(FIXED, 5, 3)}},
    {OP_ROPE, {.heads = 5, .inverse = true}, {X(3, 3, 170), OF(FIXED, 3, 17), OF(FIXED, 3, 17)}},
    {OP_CAUSAL_MASK, {.rows = 1}, {{0}}},
    {OP_CAUSAL_MASK, {.rows = 17}, {{0}}},
    {OP_CAUSAL_MASK, {.rows = 33}, {{0}}},

    {OP_ATTN_SCORES, HEADS(1, 1, 1), {X(1, 1, 1), X(1, 1, 1)}},
    {OP_ATTN_SCORES, HEADS(3, 3, 0.5f), {X(2, 5, 21), X(2, 5, 21)}},
    {OP_ATTN_SCORES, HEADS(4, 2, 0.25f), {X(3, 17, 20), X(3, 17, 10)}},
    {OP_ATTN_SCORES, HEADS(6, 1, 0.1f), {X(1, 33, 102), X(1, 33, 17)}},
    {OP_ATTN_SCORES, HEADS(2, 1, 0.125f), {X(1, 131, 130), X(1, 131, 65)}},
    {OP_ATTN_MIX, HEADS(1, 1, 1), {X(1, 1, 1, 1), X(1, 1, 1)}},
    {OP_ATTN_MIX, HEADS(3, 3, 0.5f), {X(2, 3, 5, 5), X(2, 5, 21)}},
    {OP_ATTN_MIX, HEADS(4, 2, 1), {X(3, 4, 17, 17), X(3, 17, 10)}},
    {OP_ATTN_MIX, HEADS(6, 1, 0.1f), {X(1, 6, 33, 33), X(1, 33, 17)}},
    {OP_ATTN_MIX, HEADS(2, 1, 1), {X(1, 2, 131, 131), X(1, 131, 65)}},
    {OP_ATTN_MIX_T, HEADS(1, 1, 1), {X(1, 1, 1, 1), X(1, 1, 1)}},
    {OP_ATTN_MIX_T, HEADS(3, 3, 0.5f), {X(2, 3, 5, 5), X(2, 5, 21)}},
    {OP_ATTN_MIX_T, HEADS(4, 2, 1), {X(3, 4, 17, 17), X(3, 17, 20)}},
    {OP_ATTN_MIX_T, HEADS(6, 1, 0.1f), {X(1, 6, 33, 33), X(1, 33, 102)}},
    {OP_ATTN_MIX_T, HEADS(2, 1, 0.5f), {X(1, 2, 131, 131), X(1, 131, 130)}},

    /* attention as one op: shorter than a vector, a block of queries or keys more or less one, wide and narrow heads */
    {OP_ATTENTION, CAUSAL(1, 1, 1), {QKV(1, 1, 1, 1, 1)}},
    {OP_ATTENTION, CAUSAL(4, 4, 0.35f), {QKV(2, 5, 4, 4, 8)}},
    {OP_ATTENTION, HEADS(4, 2, 0.35f), {QKV(2, 5, 4, 2, 8)}},
    {OP_ATTENTION, CAUSAL(4, 1, 0.2f), {QKV(1, 17, 4, 1, 33)}},
    {OP_ATTENTION, CAUSAL(4, 2, 0.25f), {QKV(1, 63, 4, 2, 16)}},
    {OP_ATTENTION, HEADS(4, 4, 0.125f), {QKV(1, 64, 4, 4, 64)}},
    {OP_ATTENTION, CAUSAL(2, 2, 0.2f), {QKV(1, 65, 2, 2, 33)}},
    {OP_ATTENTION, HEADS(2, 1, 0.2f), {QKV(1, 130, 2, 1, 33)}},
    {OP_ATTENTION, CAUSAL(4, 2, 0.125f), {QKV(1, 200, 4, 2, 64)}},
    {OP_ATTENTION, DROPPED(2, 2, 0.5f, true, 0.5f), {QKV(2, 7, 2, 2, 8), ONE(COUNTER)}},
    {OP_ATTENTION, DROPPED(2, 1, 0.5f, false, 0.3f), {QKV(2, 6, 2, 1, 5), ONE(COUNTER)}},
    {OP_ATTENTION, DROPPED(2, 1, 0.25f, true, 0.1f), {QKV(1, 131, 2, 1, 16), ONE(COUNTER)}},
    {OP_ATTENTION_GRAD, CAUSAL(1, 1, 1), {QKV_GRAD(1, 1, 1, 1, 1)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 4, 0.35f), {QKV_GRAD(2, 5, 4, 4, 8)}},
    {OP_ATTENTION_GRAD, HEADS(4, 2, 0.35f), {QKV_GRAD(2, 5, 4, 2, 8)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 1, 0.2f), {QKV_GRAD(1, 17, 4, 1, 33)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 2, 0.25f), {QKV_GRAD(1, 63, 4, 2, 16)}},
    {OP_ATTENTION_GRAD, HEADS(4, 4, 0.125f), {QKV_GRAD(1, 64, 4, 4, 64)}},
    {OP_ATTENTION_GRAD, CAUSAL(2, 2, 0.2f), {QKV_GRAD(1, 65, 2, 2, 33)}},
    {OP_ATTENTION_GRAD, HEADS(2, 1, 0.2f), {QKV_GRAD(1, 130, 2, 1, 33)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 2, 0.125f), {QKV_GRAD(1, 200, 4, 2, 64)}},
    {OP_ATTENTION_GRAD, DROPPED(2, 2, 0.5f, true, 0.5f), {QKV_GRAD(2, 7, 2, 2, 8), ONE(COUNTER)}},
    {OP_ATTENTION_GRAD, DROPPED(2, 1, 0.5f, false, 0.3f), {QKV_GRAD(2, 6, 2, 1, 5), ONE(COUNTER)}},
    {OP_ATTENTION_GRAD, DROPPED(2, 1, 0.25f, true, 0.1f), {QKV_GRAD(1, 131, 2, 1, 16), ONE(COUNTER)}},

    {OP_SOFTMAX, {0}, {X(3, 1)}},
    {OP_SOFTMAX, {0}, {X(5, 17)}},
    {OP_SOFTMAX, {0}, {OF(MASKED, 1, 2, 5, 5)}},
    {OP_SOFTMAX, {0}, {OF(MASKED, 2, 3, 33, 33)}},
    {OP_SOFTMAX, {0}, {X(2, 130)}},
    {OP_SOFTMAX, {0}, {X(2, 1100)}},
    {OP_SOFTMAX_GRAD, {0}, {OF(PROBABILITIES, 3, 1), X(3, 1)}},
    {OP_SOFTMAX_GRAD, {0}, {OF(PROBABILITIES, 5, 17), X(5, 17)}},
    {OP_SOFTMAX_GRAD, {0}, {OF(PROBABILITIES, 2, 5, 130), X(2, 5, 130)}},
    {OP_LOG_SOFTMAX, {0}, {X(1, 3)}},
    {OP_LOG_SOFTMAX, {0}, {X(5, 17)}},
    {OP_LOG_SOFTMAX, {0}, {X(2, 3, 130)}},
    {OP_LOG_SOFTMAX, {0}, {X(2, 9001)}},
    {OP_LOG_SOFTMAX_GRAD, {0}, {OF(LOG_PROBABILITIES, 1, 3), X(1, 3)}},
    {OP_LOG_SOFTMAX_GRAD, {0}, {OF(LOG_PROBABILITIES, 5, 17), X(5, 17)}},
    {OP_LOG_SOFTMAX_GRAD, {0}, {OF(LOG_PROBABILITIES, 2, 5, 130), X(2, 5, 130)}},

    {OP_DROPOUT, {.prob = 0.5f, .seed = 7, .stream = 1}, {X(1, 3), ONE(COUNTER)}},
    {OP_DROPOUT, {.prob = 0.1f, .seed = 7, .stream = 2}, {X(5, 17), ONE(COUNTER)}},
    {OP_DROPOUT, {.prob = 0.3f, .seed = 1ull << 40, .stream = 3}, {X(3, 33, 5), ONE(COUNTER)}},

    {OP_NLL, {0}, {X(1, 5), OF(TARGETS, 1)}},
    {OP_NLL, {0}, {X(7, 17), OF(TARGETS, 7)}},
    {OP_NLL, {0}, {X(3, 11, 130), OF(TARGETS, 3, 11)}},
    {OP_NLL, {0}, {X(3, 5), OF(PADDING, 3)}},
    {OP_NLL_GRAD, {0}, {X(1, 5), OF(TARGETS, 1), ONE(POSITIVE), SCALAR}},
    {OP_NLL_GRAD, {0}, {X(7, 17), OF(TARGETS, 7), ONE(POSITIVE), SCALAR}},
    {OP_NLL_GRAD, {0}, {X(3, 11, 130), OF(TARGETS, 3, 11), ONE(POSITIVE), SCALAR}},
    {OP_NLL_GRAD, {0}, {X(3, 5), OF(PADDING, 3), ONE(POSITIVE), SCALAR}},

    {OP_FILL, {.value = -2.5f}, {SCALAR}},
    {OP_FILL, {.value = 3}, {X(3, 5, 33)}},
    {OP_ADVANCE, {0}, {ONE(COUNTER)}},
    {OP_LR, {.lr = 1e-3f, .min_lr = 1e-5f, .warmup = 10, .total = 50}, {ONE(COUNTER)}},
    {OP_LR, {.lr = 1e-3f, .min_lr = 1e-5f, .warmup = 1, .total = 50}, {ONE(COUNTER)}},
    {OP_LR, {.lr = 1e-3f, .min_lr = 1e-5f, .warmup = 1, .total = 50, .schedule = 1}, {ONE(COUNTER)}},
    {OP_LR, {.lr = 1e-3f, .min_lr = 1e-5f, .warmup = 1, .total = 50, .schedule = 2}, {ONE(COUNTER)}},
    {OP_ACCUMULATE, {0}, {SCALAR, SCALAR}},
    {OP_ACCUMULATE, {0}, {X(17, 33), X(17, 33)}},
    {OP_ACCUMULATE, {0}, {X(5, 130), X(5, 130), ONE(POSITIVE)}},
    {OP_ACCUMULATE, {0}, {X(5, 130), X(5, 130), ONE(POSITIVE), ONE(COUNTER)}},
    {OP_ACCUMULATE, {0}, {X(5, 130), X(5, 130), ONE(POSITIVE), ONE(FIRST)}},
    {OP_ACCUMULATE, {0}, {SCALAR, SCALAR, ONE(POSITIVE), ONE(FIRST)}},
    {OP_DIVIDE, {0}, {SCALAR, ONE(POSITIVE)}},
    {OP_DIVIDE, {0}, {X(5, 33), ONE(POSITIVE)}},
    {OP_ZERO, {0}, {SCALAR}},
    {OP_ZERO, {0}, {X(3, 130)}},
    {OP_SUM_SQUARES, {0}, {X(1)}},
    {OP_SUM_SQUARES, {0}, {X(33, 17)}},
    {OP_SUM_SQUARES, {0}, {X(97, 101)}},
    {OP_CLIP, {.max_norm = 0.5f}, {SCALAR, ONE(POSITIVE), ONE(POSITIVE), ONE(POSITIVE)}},
    {OP_CLIP, {.max_norm = 500}, {SCALAR, ONE(POSITIVE)}},
    {OP_CLIP, {0}, {SCALAR, ONE(POSITIVE)}},
    {OP_CLIP, {.max_norm = 1}, {SCALAR, ONE(NOT_A_NUMBER), ONE(POSITIVE)}},
    {OP_CLIP, {.max_norm = 1}, {ONE(NOT_A_NUMBER), ONE(POSITIVE)}},
    {OP_CLIP, {.max_norm = 0.5f, .scaled = true}, {SCALAR, ONE(POSITIVE), ONE(POSITIVE), OF(POSITIVE, 3)}},
    {OP_CLIP, {.scaled = true}, {SCALAR, ONE(POSITIVE), ONE(NOT_A_NUMBER)}},
    {OP_RESCALE, {.total = 3}, {ONE(POSITIVE), ONE(COUNTER), ONE(POSITIVE)}},
    {OP_RESCALE, {.total = 300}, {ONE(POSITIVE), ONE(COUNTER), ONE(POSITIVE)}},
    {OP_RESCALE, {.total = 3}, {ONE(LARGE), ONE(COUNTER), ONE(NOT_A_NUMBER)}},
    {OP_RESCALE, {.total = 3}, {ONE(POSITIVE), ONE(COUNTER), ONE(NOT_A_NUMBER)}},
    ADAMW_OF(1),
    ADAMW_OF(5, 33),
    ADAMW_OF(3, 130),
    {OP_ADAMW, ADAMW, {X(5, 33), X(5, 33), OF(POSITIVE, 5, 33), X(5, 33), ONE(POSITIVE), ONE(COUNTER),
                       ONE(NOT_A_NUMBER)}},
    {OP_HOST_READ, {0}, {SCALAR}},

    {OP_ADD_LAYERNORM, {.eps = 1e-5f}, {X(1, 3), X(1, 3), X(3), X(3)}},
    {OP_ADD_LAYERNORM, {.eps = 1e-5f}, {X(1, 67), X(1, 67), X(67), X(67)}},
    {OP_ADD_LAYERNORM, {.eps = 1e-5f}, {X(5, 17), X(5, 17), X(17), X(17)}},
    {OP_ADD_LAYERNORM, {.eps = 1e-5f}, {X(2, 3, 130), X(2, 3, 130), X(130), X(130)}},
    {OP_ADD_RMSNORM, {.eps = 1e-6f}, {X(1, 3), X(1, 3), X(3)}},
    {OP_ADD_RMSNORM, {.eps = 1e-6f}, {X(1, 67), X(1, 67), X(67)}},
    {OP_ADD_RMSNORM, {.eps = 1e-6f}, {X(5, 17), X(5, 17), X(17)}},
    {OP_ADD_RMSNORM, {.eps = 1e-6f}, {X(2, 3, 130), X(2, 3, 130), X(130)}},
    /* one number, one row, less than a unit of rows and columns, several leading dimensions; with BLAS; many rows */
    {OP_LINEAR_GELU, {.parts = 2}, {X(1, 1), X(1, 1), X(1)}},
    {OP_LINEAR_GELU, {.parts = 2}, {X(1, 33), X(70, 33), X(70)}},
    {OP_LINEAR_GELU, {.parts = 2}, {X(3, 5), X(17, 5), X(17)}},
    {OP_LINEAR_GELU, {.parts = 2}, {X(2, 9, 33), X(7, 33), X(7)}},
    {OP_LINEAR_GELU, {.parts = 2}, {X(203, 131), X(151, 131), X(151)}},
    {OP_LINEAR_GELU, {.parts = 2}, {X(517, 3), X(130, 3), X(130)}},
    {OP_LINEAR_GELU, {.parts = 1}, {X(3, 5), X(17, 5), X(17)}},
    {OP_LINEAR_GELU, {.parts = 1}, {X(203, 131), X(151, 131), X(151)}},

    /* widths alike, as with grouped heads, below and beside the width of a block; one row; more than BLAS takes over */
    {OP_PROJECT, {.parts = 2}, {X(1, 1), X(1, 1), X(1, 1)}},
    {OP_PROJECT, {.parts = 3}, {X(3, 5), X(17, 5), X(7, 5), X(7, 5)}},
    {OP_PROJECT, {.parts = 3}, {X(2, 9, 33), X(34, 33), X(17, 33), X(17, 33), X(34), X(17), X(17)}},
    {OP_PROJECT, {.parts = 2}, {X(1, 64), X(130, 64), X(3, 64)}},
    {OP_PROJECT, {.parts = 2}, {X(1, 64), X(64, 64), X(64, 64), X(64), X(64)}},
    {OP_PROJECT, {.parts = 4}, {X(5, 3), X(1, 3), X(16, 3), X(17, 3), X(31, 3)}},
    {OP_PROJECT, {.parts = 2}, {X(3, 11, 17), X(48, 17), X(48, 17)}},
    {OP_PROJECT, {.parts = 3}, {X(203, 131), X(151, 131), X(75, 131), X(75, 131), X(151), X(75), X(75)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(1, 1), X(1, 1), X(1, 1), X(1, 1)}},
    {OP_PROJECT_GRAD, {.parts = 3}, {X(3, 17), X(3, 7), X(3, 7), X(17, 5), X(7, 5), X(7, 5)}},
    {OP_PROJECT_GRAD, {.parts = 3}, {X(2, 9, 34), X(2, 9, 17), X(2, 9, 17), X(34, 33), X(17, 33), X(17, 33)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(1, 130), X(1, 3), X(130, 64), X(3, 64)}},
    {OP_PROJECT_GRAD, {.parts = 4}, {X(5, 1), X(5, 16), X(5, 17), X(5, 31), X(1, 3), X(16, 3), X(17, 3), X(31, 3)}},
    {OP_PROJECT_GRAD, {.parts = 3}, {X(203, 151), X(203, 75), X(203, 75), X(151, 131), X(75, 131), X(75, 131)}},
    {OP_SWIGLU, {0}, {X(1, 1), X(1, 1)}},
    {OP_SWIGLU, {0}, {X(5, 33), X(5, 33)}},
    {OP_SWIGLU, {0}, {X(3, 5, 130), X(3, 5, 130)}},
    {OP_SWIGLU_GRAD, {0}, {X(3), X(3), X(3)}},
    {OP_SWIGLU_GRAD, {0}, {X(17, 33), X(17, 33), X(17, 33)}},
    {OP_SWIGLU_GRAD, {0}, {X(3, 5, 130), X(3, 5, 130), X(3, 5, 130)}},

    {OP_LINEAR_LOSS, {.parts = 2}, {X(1, 3), X(5, 3), OF(TARGETS, 1)}},
    {OP_LINEAR_LOSS, {.parts = 2}, {X(3, 11, 33), X(131, 33), OF(TARGETS, 3, 11)}},
    {OP_LINEAR_LOSS, {.parts = 2}, {X(3, 5), X(7, 5), OF(PADDING, 3)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(1, 3), X(5, 3), OF(TARGETS, 1)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(1, 64), X(130, 64), OF(TARGETS, 1)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(5, 1), X(17, 1), OF(TARGETS, 5)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(7, 17), X(9, 17), OF(TARGETS, 7)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(3, 11, 33), X(131, 33), OF(TARGETS, 3, 11)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(3, 5), X(7, 5), OF(PADDING, 3)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(70, 64), X(1030, 64), OF(TARGETS, 70)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(97, 5), X(6, 5), OF(IDS, 97)}},                  /* no padding: read in place */
    {OP_LINEAR_LOSS, {.parts = 4}, {X(203, 131), X(151, 131), OF(TARGETS, 203)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(7, 17), X(9, 17), OF(TARGETS, 7), ONE(LARGE)}},

    /* many tensors in one sweep: below, at and above the unit that threads divide them by */
    {OP_SUM_SQUARES, {0}, {X(1), X(63), X(64), X(65), X(1, 1)}},
    {OP_SUM_SQUARES, {0}, {X(97, 101), X(3), X(33, 17), X(130)}},
    {OP_SUM_SQUARES, {0}, {X(5), X(97, 101)}},
    {OP_ADAMW_ALL, MANY(1), {SETS_1((5, 33))}},
    {OP_ADAMW_ALL, MANY(2), {SETS_2((1), (97, 101))}},
    {OP_ADAMW_ALL, MANY(5), {SETS_5((64), (65), (1), (3, 130), (63))}},
    {OP_ADAMW_ALL, MANY(1), {X(5, 33), X(5, 33), OF(POSITIVE, 5, 33), X(5, 33), ONE(POSITIVE), ONE(COUNTER), ONE(NOT_A_NUMBER)}},
    {OP_ADAMW, COPIED, {X(5, 33), X(5, 33), OF(POSITIVE, 5, 33), OF(FIXED, 5, 33), X(5, 33), SCALARS}},
    {OP_ADAMW, COPIED, {X(5), X(5), OF(POSITIVE, 5), OF(FIXED, 5), X(5), ONE(POSITIVE), ONE(COUNTER), ONE(NOT_A_NUMBER)}},
    {OP_ADAMW_ALL, MANY_COPIED(2, 1), {ROLE_2(NORMAL, (97, 101), (3)), ROLE_2(NORMAL, (97, 101), (3)), ROLE_2(POSITIVE, (97, 101), (3)),
                                       OF(FIXED, 97, 101), ROLE_2(NORMAL, (97, 101), (3)), SCALARS}},
    {OP_ADAMW_ALL, MANY_COPIED(2, 2), {ROLE_2(NORMAL, (8, 64), (65)), ROLE_2(NORMAL, (8, 64), (65)), ROLE_2(POSITIVE, (8, 64), (65)),
                                       ROLE_2(FIXED, (8, 64), (65)), ROLE_2(NORMAL, (8, 64), (65)), SCALARS}},
    {OP_CAST, {.to = BF16}, {X(1)}},
    {OP_CAST, {.to = BF16}, {X(5, 33)}},
    {OP_CAST, {.to = F16}, {X(3, 130)}},
    {OP_CAST, {.to = F32}, {X(64, 8)}},
    {OP_KEEP, {0}, {X(1, 1), ONE(COUNTER), SCALAR}},
    {OP_KEEP, {0}, {X(3, 2), ONE(COUNTER), SCALAR, SCALAR}},
    {OP_KEEP, {0}, {X(64, 3), ONE(COUNTER), SCALAR, SCALAR, SCALAR}},
    {OP_KEEP, {0}, {X(5, 26), ONE(COUNTER), OF(FIXED, 13), OF(FIXED, 13)}},
    {OP_KEEP, {0}, {X(3, 75), ONE(COUNTER), SCALAR, OF(FIXED, 70), SCALAR, OF(FIXED, 3)}},
    {OP_HOST_READ, {0}, {OF(FIXED, 13)}},

    {OP_MEAN, {0}, {X(1, 1), X(1, 1)}},
    {OP_MEAN, {0}, {X(17, 33), X(17, 33)}},
    {OP_MEAN, {0}, {X(3, 5, 13), X(3, 5, 13), X(3, 5, 13)}},
    {OP_MEAN, {0}, {X(130), X(130), X(130), X(130)}},
    {OP_MEAN, {0}, {X(2, 65), X(2, 65), X(2, 65), X(2, 65), X(2, 65), X(2, 65), X(2, 65)}},
    {OP_SCALE, {.scale = 0.3f}, {X(1, 1)}},
    {OP_SCALE, {.scale = -2}, {X(3, 5, 130)}},

    {OP_HELD, {.every = 2}, {OF(IDS, 13), ONE(COUNTER)}},       /* the step to come is the 5th: it selects */
    {OP_HELD, {.every = 3}, {OF(IDS, 13), ONE(COUNTER)}},       /* and here it keeps what the newest selected */
    {OP_HELD, {.every = 3}, {OF(IDS, 1), ONE(COUNTER)}},
    {OP_SUM_SQUARES, GROUPS(3, none_and_two), {X(65), X(3), X(97, 101), OF(SOME, 2)}},
    {OP_SUM_SQUARES, GROUPS(1, of_first), {X(33, 17), OF(SOME, 2)}},
    {OP_SUM_SQUARES, GROUPS(1, of_second), {X(97, 101), OF(SOME, 2)}},
    {OP_GROUP_SCORES, SCORES(1, 3, three_units), {ONE(POSITIVE), ONE(POSITIVE), ONE(POSITIVE), ONE(POSITIVE)}},
    {OP_GROUP_SCORES, SCORES(2, 3, none_and_two), {ONE(POSITIVE), OF(POSITIVE, 3)}},
    {OP_GROUP_SCORES, SCORES(4, 7, mixed), {ONE(POSITIVE), OF(POSITIVE, 3), ONE(POSITIVE), OF(POSITIVE, 3)}},
    {OP_GROUP_SCORES, SCORES(2, 3, none_and_two), {ONE(NOT_A_NUMBER), OF(POSITIVE, 3)}},
    {OP_TOP_K, {.k = 1, .every = 1}, {OF(IDS, 1), OF(IDS, 1), ONE(COUNTER), ONE(POSITIVE), OF(POSITIVE, 1)}},
    {OP_TOP_K, {.k = 5, .every = 1}, {OF(IDS, 13), OF(IDS, 13), ONE(COUNTER), ONE(POSITIVE), OF(POSITIVE, 13)}},
    {OP_TOP_K, {.k = 4, .every = 1}, {OF(IDS, 7), OF(IDS, 7), ONE(COUNTER), ONE(POSITIVE), OF(SOME, 7)}},       /* many are equal */
    {OP_TOP_K, {.k = 2, .every = 1}, {OF(IDS, 4), OF(IDS, 4), ONE(COUNTER), ONE(POSITIVE), ONE(POSITIVE), OF(POSITIVE, 2), ONE(POSITIVE)}},
    {OP_TOP_K, {.k = 300, .every = 1}, {OF(IDS, 300), OF(IDS, 300), ONE(COUNTER), ONE(POSITIVE), OF(POSITIVE, 300)}},
    {OP_TOP_K, {.k = 50, .every = 1}, {OF(IDS, 300), OF(IDS, 300), ONE(COUNTER), ONE(POSITIVE), OF(POSITIVE, 300)}},
    {OP_TOP_K, {.k = 5, .every = 2}, {OF(IDS, 13), OF(IDS, 13), ONE(COUNTER), ONE(POSITIVE), OF(POSITIVE, 13)}},
    {OP_TOP_K, {.k = 5, .every = 1, .random = true, .seed = 42, .stream = 7}, {OF(IDS, 13), OF(IDS, 13), ONE(COUNTER), ONE(POSITIVE),
                                                                             OF(POSITIVE, 13)}},
    {OP_TOP_K, {.k = 5, .every = 1}, {OF(IDS, 13), OF(IDS, 13), ONE(COUNTER), ONE(NOT_A_NUMBER), OF(POSITIVE, 13)}},
    {OP_ADAMW, MASKED_OF(0, 0), {X(5, 33), X(5, 33), OF(POSITIVE, 5, 33), X(5, 33), SCALARS, OF(SOME, 3), OF(COUNTER, 3)}},
    {OP_ADAMW, MASKED_OF(0, 1), {X(5, 33), X(5, 33), OF(POSITIVE, 5, 33), OF(FIXED, 5, 33), X(5, 33), SCALARS, OF(SOME, 3), OF(COUNTER, 3)}},
    {OP_ADAMW_ALL, MASKED_OF(5, 0), {SETS_5((64), (65), (97, 101), (3, 130), (63)), OF(SOME, 3), OF(COUNTER, 3)}},
    {OP_ADAMW_ALL, MASKED_OF(2, 1), {ROLE_2(NORMAL, (97, 101), (3)), ROLE_2(NORMAL, (97, 101), (3)), ROLE_2(POSITIVE, (97, 101), (3)),
                                     OF(FIXED, 97, 101), ROLE_2(NORMAL, (97, 101), (3)), SCALARS, OF(SOME, 3), OF(COUNTER, 3)}},

    /* attention, whole heads in one block: one strip of rows, all of them, a part of the last one, more heads than fill a GPU */
    {OP_ATTENTION, CAUSAL(4, 4, 0.2f), {QKV(66, 18, 4, 4, 32)}},
    {OP_ATTENTION, CAUSAL(4, 4, 0.18f), {QKV(2, 64, 4, 4, 32)}},
    {OP_ATTENTION, CAUSAL(2, 2, 0.125f), {QKV(1, 128, 2, 2, 64)}},
    {OP_ATTENTION_GRAD, CAUSAL(3, 3, 0.3f), {QKV_GRAD(2, 16, 3, 3, 16)}},
    {OP_ATTENTION_GRAD, HEADS(2, 2, 0.2f), {QKV_GRAD(2, 37, 2, 2, 24)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 4, 0.18f), {QKV_GRAD(2, 64, 4, 4, 32)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 4, 0.2f), {QKV_GRAD(66, 18, 4, 4, 32)}},
    {OP_ATTENTION_GRAD, CAUSAL(2, 2, 0.125f), {QKV_GRAD(1, 128, 2, 2, 64)}},
    {OP_ATTENTION_GRAD, HEADS(2, 2, 0.125f), {QKV_GRAD(1, 101, 2, 2, 40)}},
    {OP_SUM_SHARDS, {.parts = 1, .total = 1}, {X(5, 33), ONE(FIRST), X(5, 33), ONE(POSITIVE)}},
    {OP_SUM_SHARDS, {.parts = 1, .total = 3}, {X(97, 101), ONE(FIRST), X(97, 101)}},
    {OP_SUM_SHARDS, {.parts = 3, .total = 1}, {X(65), X(65), X(65), ONE(COUNTER), X(65), ONE(POSITIVE)}},
    {OP_REDUCE_START, {.parts = 1}, {X(1)}},
    {OP_REDUCE_START, {.parts = 3}, {X(5, 33), X(64), X(97, 101), ONE(POSITIVE)}},
    {OP_REDUCE_WAIT, {.parts = 1}, {X(65), X(65)}},
    {OP_REDUCE_WAIT, {.parts = 2}, {X(9866), ONE(POSITIVE), X(97, 101), X(69)}},
    {OP_REDUCE_START, {.parts = 2, .n_cuts = 3, .cuts = two_slices}, {X(2048), X(5, 33), ONE(POSITIVE)}},
    {OP_REDUCE_WAIT, {.parts = 2, .sliced = true, .first = 1024}, {X(2213), ONE(POSITIVE), X(1024), X(165)}},
    {OP_SQUARE_BLOCKS, {.rows = 14, .n_members = 2, .members = block_places}, {X(97, 101), X(130)}},
    {OP_SQUARE_BLOCKS, {.rows = 14, .n_members = 2, .members = block_places, .masked = true}, {X(97, 101), X(130), OF(SOME, 2)}},
    {OP_SUM_BLOCKS, {.parts = 2, .n_members = 2, .members = block_places}, {X(65)}},
    {OP_GATHER_START, {.parts = 2, .n_cuts = 3, .cuts = two_slices}, {X(2048), X(5, 33)}},
    {OP_GATHER_WAIT, {.parts = 2, .n_cuts = 3, .cuts = two_slices}, {X(2048), X(5, 33)}},
    {OP_EMBED, {0}, {X(7, 16), OF(TARGETS, 3, 5)}},                             /* ids below 0 */
    {OP_EMBED, {0}, {X(7, 17), OF(PADDING, 2, 3)}},
    {OP_EMBED_GRAD, {0}, {X(7, 17), OF(TARGETS, 3, 5), X(3, 5, 17)}},
    {OP_EMBED_GRAD, {0}, {X(7, 24), OF(TARGETS, 3, 700), X(3, 700, 24)}},
    {OP_EMBED_GRAD, {0}, {X(7, 17), OF(PADDING, 3, 700), X(3, 700, 17)}},
    {OP_GATHER_WAIT, {.parts = 2, .copies = 1, .n_members = 1, .members = second_copied, .n_cuts = 3, .cuts = two_slices}, {X(2048), X(5, 33), X(5, 33)}},
    {OP_SUM_BLOCKS, {.parts = 2, .n_members = 2, .members = block_places}, {OF(POSITIVE, 20011)}},
    {OP_SUM_SQUARES, {0}, {X(3, 1024), X(2111, 1024), X(1023)}},
    /* dropout of a part of a batch: from a block of random numbers on, and from the middle of one */
    {OP_DROPOUT, {.prob = 0.3f, .seed = 7, .stream = 3, .first = 4096}, {X(9, 32), ONE(COUNTER)}},
    {OP_DROPOUT, {.prob = 0.3f, .seed = 7, .stream = 3, .first = 867}, {X(3, 17, 17), ONE(COUNTER)}},
    {OP_ATTENTION, {.heads = 2, .kv_heads = 2, .scale = 0.2f, .causal = true, .prob = 0.2f, .seed = 7, .first = 3 * 2 * 64 * 64}, {QKV(2, 64, 2, 2, 32), ONE(COUNTER)}},
    {OP_ATTENTION, {.heads = 2, .kv_heads = 1, .scale = 0.2f, .causal = true, .prob = 0.2f, .seed = 7, .first = 2 * 37 * 37}, {QKV(1, 37, 2, 1, 16), ONE(COUNTER)}},
    {OP_ATTENTION_GRAD, {.heads = 2, .kv_heads = 2, .scale = 0.2f, .causal = true, .prob = 0.2f, .seed = 7, .first = 3 * 2 * 64 * 64}, {QKV_GRAD(2, 64, 2, 2, 32), ONE(COUNTER)}},
    {OP_ATTENTION_GRAD, {.heads = 2, .kv_heads = 1, .scale = 0.2f, .causal = true, .prob = 0.2f, .seed = 7, .first = 2 * 37 * 37}, {QKV_GRAD(1, 37, 2, 1, 16), ONE(COUNTER)}},
    /* packed samples: shorter and longer than a tile, dropped too */
    {OP_ATTENTION, PACKED(2, 2, 0.3f, 0, 0), {QKV(2, 5, 2, 2, 8), OF(STARTS, 2, 5)}},
    {OP_ATTENTION, PACKED(4, 2, 0.25f, 0, 0), {QKV(2, 200, 4, 2, 16), OF(STARTS, 2, 200)}},
    {OP_ATTENTION, PACKED(2, 1, 0.25f, 0.2f, 0), {QKV(3, 131, 2, 1, 16), ONE(COUNTER), OF(STARTS, 3, 131)}},
    {OP_ATTENTION, PACKED(2, 2, 0.2f, 0.2f, 2 * 328 * 328), {QKV(1, 328, 2, 2, 16), ONE(COUNTER), OF(STARTS, 1, 328)}},
    {OP_ATTENTION_GRAD, PACKED(2, 2, 0.3f, 0, 0), {QKV_GRAD(2, 5, 2, 2, 8), OF(STARTS, 2, 5)}},
    {OP_ATTENTION_GRAD, PACKED(4, 2, 0.25f, 0, 0), {QKV_GRAD(2, 200, 4, 2, 16), OF(STARTS, 2, 200)}},
    {OP_ATTENTION_GRAD, PACKED(2, 1, 0.25f, 0.2f, 0), {QKV_GRAD(3, 131, 2, 1, 16), ONE(COUNTER), OF(STARTS, 3, 131)}},
    {OP_ATTENTION_GRAD, PACKED(2, 2, 0.2f, 0.2f, 2 * 328 * 328), {QKV_GRAD(1, 328, 2, 2, 16), ONE(COUNTER), OF(STARTS, 1, 328)}},

    /* What generation adds stands behind the others: numbers of a case hang on its place. Products of few rows; what is kept: of each sample, of one for all, nothing;
     * queries that see one key, a block more or less one, none. */
    {OP_LINEAR_GELU, {.parts = 1}, {X(1, 1, 768), X(70, 768), X(70)}},
    {OP_LINEAR_GELU, {.parts = 1}, {X(7, 1, 64), X(131, 64), X(131)}},
    {OP_PROJECT, {.parts = 3}, {X(1, 1, 768), X(68, 768), X(34, 768), X(34, 768), X(68), X(34), X(34)}},
    {OP_PROJECT, {.parts = 2}, {X(6, 1, 36), X(33, 36), X(33, 36)}},
    {OP_MATMUL, {.trans_b = true}, {X(1, 768), X(133, 768), X(133)}},           /* a token, and several samples' */
    {OP_MATMUL, {.trans_b = true}, {X(2, 1, 515), X(37, 515), X(37)}},
    {OP_MATMUL, {.trans_b = true}, {X(5, 1, 130), X(18, 130)}},
    {OP_MATMUL, {.trans_b = true}, {X(8, 1, 64), X(131, 64), X(131)}},
    {OP_ROPE, {.heads = 3}, {X(2, 5, 18), OF(FIXED, 12, 3), OF(FIXED, 12, 3), OF(PLACES, 2, 5)}},
    {OP_ROPE, {.heads = 2}, {X(3, 1, 128), OF(FIXED, 33, 32), OF(FIXED, 33, 32), OF(PLACES, 3, 1)}},
    {OP_ROPE, {.heads = 1, .inverse = true}, {X(1, 9, 16), OF(FIXED, 9, 8), OF(FIXED, 9, 8), OF(PADDING, 1, 9)}},
    {OP_STORE_KV, {0}, {KEPT(1, 1, 1), X(1, 1, 1), X(1, 1, 1), OF(PLACES, 1, 1)}},
    {OP_STORE_KV, {0}, {KEPT(3, 20, 17), X(3, 5, 17), X(3, 5, 17), OF(PLACES, 3, 5)}},
    {OP_STORE_KV, {0}, {KEPT(3, 9, 64), X(1, 9, 64), X(1, 9, 64), OF(PLACES, 1, 9)}},
    {OP_STORE_KV, {0}, {KEPT(4, 33, 130), X(4, 1, 130), X(4, 1, 130), OF(PLACES, 4, 1)}},
    {OP_STORE_KV, {0}, {KEPT(2, 4, 8), X(2, 7, 8), X(2, 7, 8), OF(PLACES, 2, 7)}},            /* more places than there is room */
    {OP_STORE_KV, {0}, {KEPT(2, 5, 16), X(2, 3, 16), X(2, 3, 16), OF(PADDING, 2, 3)}},
    {OP_ATTEND_KV, HEADS(1, 1, 1), {X(1, 1, 1), KEPT(1, 1, 1), OF(PLACES, 1, 1)}},
    {OP_ATTEND_KV, HEADS(4, 4, 0.35f), {X(2, 5, 32), KEPT(2, 12, 32), OF(PLACES, 2, 5)}},
    {OP_ATTEND_KV, HEADS(4, 2, 0.25f), {X(3, 3, 64), KEPT(3, 20, 32), OF(PLACES, 3, 3)}},
    {OP_ATTEND_KV, HEADS(3, 1, 0.2f), {X(11, 1, 99), KEPT(11, 71, 33), OF(PLACES, 11, 1)}},
    {OP_ATTEND_KV, HEADS(12, 12, 0.125f), {X(1, 130, 768), KEPT(1, 130, 768), OF(PLACES, 1, 130)}},
    {OP_ATTEND_KV, HEADS(4, 2, 0.1f), {X(1, 67, 512), KEPT(1, 80, 256), OF(PLACES, 1, 67)}},
    {OP_ATTEND_KV, HEADS(2, 2, 0.2f), {X(2, 3, 80), KEPT(2, 5, 80), OF(PADDING, 2, 3)}},
    {OP_ATTEND_KV, HEADS(2, 1, 0.1f), {X(1, 600, 32), KEPT(1, 600, 16), OF(PLACES, 1, 600)}},

    {OP_ROPE_TABLE, {.rows = 40, .cols = 3, .base = 10000, .stretch = {.factor = 4}}, {{0}}},
    {OP_ROPE_TABLE, {.rows = 130, .cols = 32, .base = 500000, .stretch = {.factor = 8, .low = 1, .high = 4, .context = 8192}}, {{0}}},
    {OP_ROPE_TABLE, {.rows = 70, .cols = 17, .base = 500, .stretch = {.factor = 32, .low = 0.5f, .high = 3, .context = 12}}, {{0}}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(300, 20), X(283, 20), OF(IDS, 300)}},             /* several blocks of words and rows */
    {OP_LINEAR_LOSS, {.parts = 4}, {X(37, 301), X(531, 301), OF(TARGETS, 37)}},
    {OP_ADD_RMSNORM, {.eps = 1e-6f}, {X(2, 8200), X(2, 8200), X(8200)}},
    {OP_ADD_LAYERNORM, {.eps = 1e-5f}, {X(2, 8200), X(2, 8200), X(8200), X(8200)}},
};

enum { OP_CASES = sizeof op_cases / sizeof *op_cases };

/* So large that kernels share them out in pieces (test_helping). */
static const struct op_case large_cases[] = {
    {OP_MATMUL, {.trans_b = true}, {X(203, 256), X(300, 256)}},            /* few rows a thread, columns come one after the other */
    {OP_MATMUL, {.trans_b = true}, {X(701, 256), X(300, 256)}},
    {OP_MATMUL, {0}, {X(203, 300), X(300, 256)}},
    {OP_MATMUL, {0}, {X(701, 300), X(300, 256)}},
    {OP_MATMUL, {.trans_a = true}, {X(512, 256), X(512, 130)}},
    {OP_MATMUL, {.trans_b = true, .round = ROUND_BF16}, {X(901, 256), X(300, 256)}},
    {OP_PROJECT, {.parts = 2}, {X(300, 256), X(256, 256), X(130, 256)}},
    {OP_PROJECT_GRAD, {.parts = 2}, {X(300, 256), X(300, 130), X(256, 256), X(130, 256)}},
    {OP_LINEAR_GELU, {.parts = 1}, {X(300, 256), X(300, 256), X(300)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(1800, 24), X(1030, 24), OF(TARGETS, 1800)}},
    {OP_LINEAR_LOSS, {.parts = 4}, {X(300, 128), X(1030, 128), OF(TARGETS, 300)}},       /* losses so large that it goes through products */
    {OP_ATTENTION, CAUSAL(4, 2, 0.2f), {QKV(3, 200, 4, 2, 32)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 4, 0.2f), {QKV_GRAD(6, 130, 4, 4, 32)}},
    {OP_ATTENTION_GRAD, CAUSAL(4, 2, 0.2f), {QKV_GRAD(1, 200, 4, 2, 32)}},   /* fewer heads than threads: parts of them */
    {OP_ADAMW_ALL, MANY(2), {SETS_2((300, 301), (500, 257))}},
};
enum { LARGE_CASES = sizeof large_cases / sizeof *large_cases };

#undef X
#undef OF
#undef ONE
#undef SCALAR
#undef SHAPE
#undef HEADS
#undef CAUSAL
#undef DROPPED
#undef PACKED
#undef QKV
#undef QKV_GRAD
#undef ADAMW
#undef ADAMW_OF
#undef GROUPS
#undef SCORES
#undef MASKED_OF
#undef MANY
#undef SCALARS
#undef ROLE_1
#undef ROLE_2
#undef ROLE_5
#undef SETS_1
#undef SETS_2
#undef SETS_5

#endif
