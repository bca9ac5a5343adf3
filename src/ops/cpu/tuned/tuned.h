/* Shared by the tuned kernels. They are plain C over restrict pointers that the compiler vectorises; every file is
 * compiled once per instruction set (HONE_ISA), so all names go through TUNED(). */
#ifndef HONE_OPS_CPU_TUNED_H
#define HONE_OPS_CPU_TUNED_H

#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/pieces.h"

#define TUNED_NAME(name, isa) cpu_##name##_##isa
#define TUNED_PASTE(name, isa) TUNED_NAME(name, isa)
#define TUNED(name) TUNED_PASTE(name, HONE_ISA)

extern const struct kernel TUNED(elementwise)[], TUNED(optimizer)[], TUNED(norm)[], TUNED(softmax)[], TUNED(loss)[],
    TUNED(embed)[], TUNED(rope)[], TUNED(matmul)[], TUNED(attention)[], TUNED(flash)[],
    TUNED(linear_gelu)[], TUNED(project)[], TUNED(swiglu)[], TUNED(linear_loss)[], TUNED(cache)[];
extern const struct kernel *const TUNED(kernels)[];
gemm_fn TUNED(gemm), TUNED(gemm_own), TUNED(gemm_few), TUNED(gemm_bf16);        /* any; our own of f32, of few rows, of bf16 */
registers_fn TUNED(registers), TUNED(registers_bf16);             /* the second where bf16_tile.h has one */

/* Before a loop: its iterations do not depend on each other, though pointers may be equal; and: unroll it. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define UNROLL(n) _Pragma("unroll")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#define UNROLL_TEXT(x) _Pragma(#x)
#define UNROLL(n) UNROLL_TEXT(GCC unroll n)
#endif

/* Asks for a line of memory that will be written. Where x86 has no PREFETCHW compilers make a plain prefetch of it, after which cores share the line, and a store waits longer: then nobody asks. */
#if defined(__x86_64__) && !defined(__PRFCHW__)
enum { CAN_WANT_TO_WRITE = false };
#define WANT_TO_WRITE(at) ((void)(at))
#else
enum { CAN_WANT_TO_WRITE = true };
#define WANT_TO_WRITE(at) __builtin_prefetch(at, 1)
#endif

/* For a line that another core made an x86 waits, as whoever writes it the next time does for all that have read it; a Neoverse fetches it as fast as its own (docs/performance.md). */
#if defined(__x86_64__)
enum { FAR_IS_DEAR = true };
#else
enum { FAR_IS_DEAR = false };
#endif

/* n in whole units; the smaller of two. */
static inline int64_t up_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Operands of a product: input i of a call, from a number of it on. */
static inline void gemm_take_a(struct gemm *g, const struct kernel_call *c, int i, int64_t from)
{
    const bool bf16 = call_in(c, i)->dtype == BF16;
    g->a = bf16 ? NULL : (const float *)c->in[i] + from;
    g->a_bf16 = bf16 ? (const uint16_t *)c->in[i] + from : NULL;
}
static inline void gemm_take_b(struct gemm *g, const struct kernel_call *c, int i, int64_t from)
{
    const bool bf16 = call_in(c, i)->dtype == BF16;
    g->b = bf16 ? NULL : (const float *)c->in[i] + from;
    g->b_bf16 = bf16 ? (const uint16_t *)c->in[i] + from : NULL;
}

/* Elements in units of 64 floats, so that threads share no cache line. */
static inline struct span my_elements(const struct kernel_thread *t, int64_t n)
{
    return team_span(n, 64, t->index, t->count);
}
static inline struct span my_rows(const struct kernel_thread *t, int64_t n)
{
    return team_span(n, 1, t->index, t->count);
}
static inline struct span my_columns(const struct kernel_thread *t, int64_t n)
{
    return team_span(n, 16, t->index, t->count);
}

/* What a thread touches where values are cut by rows (inputs and outputs with a bit), or by elements. */
static inline struct share share_rows(struct span rows, int64_t of, uint32_t in) { return (struct share){rows, of, in, ~0u}; }
enum { FIRST_IN = 1, FIRST_TWO_IN = 3 };

/* The bits of a float, and back. */
static inline int32_t float_bits(float x) { int32_t i; __builtin_memcpy(&i, &x, sizeof i); return i; }
static inline float bits_float(int32_t i) { float x; __builtin_memcpy(&x, &i, sizeof x); return x; }

/* e^x in single precision, within 2 ulp for |x| up to 87.3; 0 below that, infinite above, NaN for NaN. Free of branches and
 * of float comparisons, which are dear where NaN must be minded, so that a loop over it vectorises well: x = n ln2 + r, a
 * polynomial for e^r, the exponent bits for 2^n. Adding 1.5 * 2^23 rounds to a whole number that stands in the low bits. */
static inline float fast_exp(float x)
{
    const float round = 12582912.0f, shifted = x * 1.44269504f + round, n = shifted - round;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float e = 1.9875691500e-4f;
    e = e * r + 1.3981999507e-3f;
    e = e * r + 8.3334519073e-3f;
    e = e * r + 4.1665795894e-2f;
    e = e * r + 1.6666665459e-1f;
    e = e * r + 5.0000001201e-1f;
    e = e * r * r + r + 1.0f;
    e *= bits_float((int32_t)(((uint32_t)float_bits(shifted) + 127) << 23));

    const int32_t size = float_bits(x) & 0x7fffffff, negative = float_bits(x) >> 31;
    const int32_t outside = -(size > 0x42ae999a), nan = -(size > 0x7f800000);      /* |x| > 87.3; not a number */
    const int32_t special = (0x7f800000 & ~negative) | (nan & 0x7fc00000);
    return bits_float((float_bits(e) & ~outside) | (special & outside));
}

static inline float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

#endif
