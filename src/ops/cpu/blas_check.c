/* Whether a BLAS library may be called from several threads at once; see blas.h. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rng.h"
#include "core/team.h"
#include "ops/cpu/blas.h"

/* A library whose callers share a buffer was wrong in one round of 50 to 70 on two threads. */
enum { ROUNDS = 500 };              /* of every task */
static const double CLOSE = 1e-4;   /* of sums of at most DEPTH_MOST products of numbers below 1 */

static const struct task { int m, n, k; bool ta, tb; } tasks[] = {
    {256, 96, 96, false, true}, {64, 64, 64, false, false}, {96, 128, 64, true, false}, {33, 200, 70, false, true},
};
enum { TASKS = sizeof tasks / sizeof *tasks, DEPTH_MOST = 96, A_MOST = 256 * 96, B_MOST = 200 * 96, C_MOST = 256 * 96 };

/* What one thread multiplies, and what must come out. */
struct desk {
    float a[A_MOST], b[B_MOST], c[C_MOST], alone[TASKS][C_MOST];
};

struct work {
    struct team *team;
    sgemm_fn *sgemm;
    struct desk *desks;             /* per thread */
    atomic_int wrong;               /* products whose bits are not those of one thread alone */
};

static struct gemm product(const struct task *s, const struct desk *d, float *c)
{
    return (struct gemm){.m = s->m, .n = s->n, .k = s->k, .a = d->a, .a_row = s->ta ? 1 : s->k, .a_col = s->ta ? s->m : 1, .b = d->b,
                         .ldb = s->tb ? s->k : s->n, .b_transposed = s->tb, .c = c, .ldc = s->n, .scale = 1, .kernel = GEMM_OWN};
}

static size_t result_bytes(const struct task *s) { return (size_t)(s->m * s->n) * sizeof(float); }

static void fill(float *x, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(2 * rng_double(seed, 0, (uint64_t)i) - 1);
}

/* The library alone agrees with our own kernel. */
static bool agrees_alone(const struct work *w, struct desk *d)
{
    bool close = true;
    for (int i = 0; i < TASKS; i++) {
        struct gemm own = product(&tasks[i], d, d->c), its = product(&tasks[i], d, d->alone[i]);
        cpu_gemm()(&own);
        blas_multiply(w->sgemm, &its);
        for (int64_t j = 0; j < own.m * own.n; j++)
            close = close && fabs((double)d->c[j] - d->alone[i][j]) <= CLOSE * (1 + fabs((double)d->c[j]));
    }
    return close;
}

/* Every thread on its own desk, all at the same moment. */
static void multiply_at_once(void *argument, int member)
{
    struct work *w = argument;
    struct desk *d = &w->desks[member];
    for (int round = 0; round < ROUNDS * TASKS; round++) {
        const struct task *s = &tasks[round % TASKS];
        struct gemm g = product(s, d, d->c);
        team_barrier(w->team);
        blas_multiply(w->sgemm, &g);
        if (memcmp(d->c, d->alone[round % TASKS], result_bytes(s)))
            atomic_fetch_add(&w->wrong, 1);
    }
}

static void judge(struct blas_check *out, struct work *w)
{
    bool close = true;
    for (int i = 0; i < out->threads; i++) {
        fill(w->desks[i].a, A_MOST, (uint64_t)i);
        fill(w->desks[i].b, B_MOST, (uint64_t)(i + out->threads));
        close = agrees_alone(w, &w->desks[i]) && close;
    }
    if (close)
        team_run(w->team, multiply_at_once, w);
    const int wrong = atomic_load(&w->wrong);
    out->done = true;
    out->right = close && !wrong;
    if (!close)
        snprintf(out->why, sizeof out->why, "its products are not those of hone's own kernel");
    else if (wrong)
        snprintf(out->why, sizeof out->why, "%d of %lld products were wrong while %d threads called it at once", wrong,
                 (long long)(out->rounds * out->threads), out->threads);
}

void blas_check(struct blas_check *out, sgemm_fn *sgemm, int threads)
{
    struct work w = {.sgemm = sgemm};
    *out = (struct blas_check){.threads = threads, .rounds = ROUNDS * TASKS};
    snprintf(out->why, sizeof out->why, "it could not be checked: no memory or no threads");
    w.desks = calloc((size_t)threads, sizeof *w.desks);
    if (w.desks && team_new(&w.team, threads, NULL) == OK)
        judge(out, &w);
    team_free(w.team);
    free(w.desks);
}
