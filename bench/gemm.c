/* Times our own matrix product and BLAS in turns, with multiply-adds in registers between them, over the shapes of the shipped configs
 * as two threads divide them: one thread, the best of many. On a machine whose clock moves the columns at the right say more: the
 * middle of what each reached of the registers beside it. Behind them products of bf16, in every way that this CPU has.
 * With "far" operands are in no cache, as those of a step may be: every product has others, of some hundred MB.
 *   cmake --build --preset release --target bench-gemm && build/release/bench-gemm [ROUNDS [NAME [far]]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ops/cpu/bf16.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"

enum { ROUNDS = 30, ROUNDS_MOST = 1000, FAR_FLOATS = 30 << 20 };

static const struct { int m, n, k; bool ta, tb; const char *what; } shapes[] = {
    {64, 64, 64, 0, 1, "lecture-gpt forward"},
    {64, 256, 64, 0, 1, "lecture-gpt ffn"},
    {64, 64, 256, 0, 0, "lecture-gpt dx"},
    {32, 256, 128, 1, 0, "lecture-gpt dw"},
    {512, 256, 256, 0, 1, "tinyllama-ex3 forward"},
    {512, 512, 256, 0, 1, "tinyllama-ex3 ffn"},
    {512, 256, 512, 0, 0, "tinyllama-ex3 dx"},
    {128, 256, 1024, 1, 0, "tinyllama-ex3 dw"},
    {512, 1000, 256, 0, 1, "tinyllama-ex3 logits"},
    {500, 256, 1024, 1, 0, "tinyllama-ex3 head's dw"},
    {1024, 384, 128, 0, 1, "k1-baseline forward"},
    {1024, 128, 256, 0, 0, "k1-baseline dx"},
    {64, 128, 2048, 1, 0, "k1-baseline dw"},
    {1024, 10000, 128, 0, 1, "k1-baseline logits"},
    {512, 128, 10000, 0, 0, "k1-baseline head's dx"},
    {2048, 768, 768, 0, 1, "gpt2-124m forward"},
    {2048, 768, 3072, 0, 0, "gpt2-124m large ffn dx"},
    {384, 768, 4096, 1, 0, "gpt2-124m large dw"},
    {2048, 2048, 2048, 0, 1, "large"},
    {32, 32, 16, 0, 1, "attention"},
    {32, 16, 32, 1, 0, "attention"},
    {128, 128, 32, 0, 1, "attention"},
    {128, 32, 128, 0, 0, "attention"},
    {13, 29, 37, 0, 1, "odd"},
};

enum side { OWN, BLAS, THIRDS, SIDES };         /* thirds: our own, by AMX where there is one */
static const enum gemm_kernel kernel_of[SIDES] = {GEMM_OWN, GEMM_BLAS, GEMM_THIRDS};

struct reading {
    double best;                    /* GFLOP/s */
    double of_registers[ROUNDS_MOST];
};

/* What the thread has worked: other load on the machine takes turns with it. */
static double worked_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double registers_gflops(void)
{
    const double start = worked_s(), flops = cpu_registers()(20000);
    return flops / (worked_s() - start) / 1e9;
}

static int64_t copies, turn;            /* of the operands, one behind the other; which product it is */

static double product_gflops(const struct gemm *first)
{
    struct gemm now = *first;
    const struct gemm *g = &now;
    const double flops = 2.0 * (double)(g->m * g->n * g->k);
    const int repeats = 1 + (int)(2e7 / flops);
    const double start = worked_s();
    for (int r = 0; r < repeats; r++) {
        const int64_t at = turn++ % copies;
        now.a = first->a + at * g->m * g->k;
        now.b = first->b + at * g->n * g->k;
        now.c = first->c + at * g->m * g->n;
        cpu_gemm()(g);
    }
    return flops * repeats / (worked_s() - start) / 1e9;
}

static int by_size(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b; }

static void take_turns(struct reading r[SIDES], struct gemm *g, int rounds)
{
    double before = registers_gflops();
    for (int i = 0; i < rounds; i++)
        for (int s = 0; s < SIDES; s++) {
            g->kernel = kernel_of[s];
            const double gflops = product_gflops(g), behind = registers_gflops();
            r[s].best = gflops > r[s].best ? gflops : r[s].best;
            r[s].of_registers[i] = gflops / (before > behind ? before : behind);
            before = behind;
        }
    for (int s = 0; s < SIDES; s++)
        qsort(r[s].of_registers, (size_t)rounds, sizeof *r[s].of_registers, by_size);
}

/* With operands in bf16, no better than `way`; 0 where the CPU has it not. */
static double best_bf16(enum bf16_way way, struct gemm *g, int rounds)
{
    double best = 0;
    cpu_bf16_limit(way);
    g->bf16 = true;
    g->kernel = GEMM_OWN;
    for (int i = 0; i < rounds && cpu_bf16_way() == way; i++) {
        const double gflops = product_gflops(g);
        best = gflops > best ? gflops : best;
    }
    g->bf16 = false;
    cpu_bf16_limit(BF16_AMX);
    return best;
}

static float *filled(int64_t n)
{
    float *x = cpu_memory_take((size_t)n * sizeof *x);           /* as programs have it */
    if (!x)
        exit(1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 13) - 6;
    return x;
}

int main(int argc, char **argv)
{
    const int asked = argc > 1 ? atoi(argv[1]) : ROUNDS, rounds = asked < 1 ? 1 : asked < ROUNDS_MOST ? asked : ROUNDS_MOST;
    static struct reading r[SIDES];
    double registers = 0;
    for (int i = 0; i < 100; i++) {
        const double now = registers_gflops();
        registers = now > registers ? now : registers;
    }
    printf("%s, one thread: %.1f GFLOP/s of multiply-adds in registers\n", cpu_isa_name(), registers);
    printf("%-22s %-24s %8s %8s %8s %6s   %8s %8s %8s %8s %8s %8s %8s   (GFLOP/s, best; the middle, of registers; bf16, 0 where the CPU has none)\n",
           "m x n x k", "", cpu_blas_name(), "own", "thirds", "ratio", "", "own", "thirds", "rounded", "BFMMLA", "AVX512", "AMX");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (argc > 2 && !strstr(shapes[i].what, argv[2]))
            continue;
        const int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
        const bool ta = shapes[i].ta, tb = shapes[i].tb;
        copies = argc > 3 ? 1 + FAR_FLOATS / (m * k + n * k + m * n) : 1;
        float *a = filled(copies * m * k), *b = filled(copies * n * k), *c = filled(copies * m * n);
        struct gemm g = {.m = m, .n = n, .k = k, .a = a, .a_row = ta ? 1 : k, .a_col = ta ? m : 1, .b = b,
                         .ldb = tb ? k : n, .b_transposed = tb, .c = c, .ldc = n, .scale = 1};
        r[OWN].best = r[BLAS].best = r[THIRDS].best = 0;
        take_turns(r, &g, rounds);
        char text[64];
        snprintf(text, sizeof text, "%ld x %ld x %ld %c%c", (long)m, (long)n, (long)k, ta ? 'T' : 'N', tb ? 'T' : 'N');
        printf("%-22s %-24s %8.1f %8.1f %8.1f %6.2f   %6.1f %% %6.1f %% %6.1f %% %8.1f %8.1f %8.1f %8.1f\n", text, shapes[i].what, r[BLAS].best, r[OWN].best, r[THIRDS].best, r[THIRDS].best / r[BLAS].best,
               100 * r[BLAS].of_registers[rounds / 2], 100 * r[OWN].of_registers[rounds / 2], 100 * r[THIRDS].of_registers[rounds / 2], best_bf16(BF16_ROUNDED, &g, rounds),
               best_bf16(BF16_BFMMLA, &g, rounds), best_bf16(BF16_AVX512, &g, rounds), best_bf16(BF16_AMX, &g, rounds));
        fflush(stdout);
        cpu_memory_give(a);
        cpu_memory_give(b);
        cpu_memory_give(c);
    }
    return 0;
}
