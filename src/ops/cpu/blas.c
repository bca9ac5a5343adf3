/* Which BLAS library: the first of a list that is there and right. */
#include "ops/cpu/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/choices.h"
#include "core/clock.h"
#include "core/inside.h"
#include "core/notice.h"
#include "ops/cpu/bf16.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_int.h"

const char *const gemm_variants[] = {"own", "thirds", "blas", NULL};

/* Tiles lower the clock of all that a step does beside them, by 8 to 25 % on 16 cores of a Xeon, and a product that is timed again and again does not show what it costs to begin with
 * them: steps of which products by tiles took 0.77 to 0.95 of the time were slower by 10 to 40 % (docs/performance.md). */
static const double THIRDS_BELOW = 0.75;

double gemm_below(int variant)
{
    switch (variant) {
    case GEMM_BLAS: return cpu_blas() ? 1 : 0;
    case GEMM_THIRDS: return cpu_bf16_way() == BF16_AMX ? THIRDS_BELOW : 0;
    default: return 1;
    }
}

bool gemm_fits(const struct program *p, const struct op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (shape_rows(p->values[op->in[i]].shape) >= INT32_MAX || shape_last(p->values[op->in[i]].shape) >= INT32_MAX)
            return false;
    return true;
}

/* ---- libraries ---- */

/* OpenBLAS starts a thread per core when it is loaded unless it is told not to, and chooses kernels by a list of CPU models; on one
 * that is newer than the library it would take those for SSE3. */
static void before_openblas(void)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
#if defined(__x86_64__)
    const char *isa = cpu_isa_name();
    setenv("OPENBLAS_CORETYPE", !strcmp(isa, "avx512") ? "SkylakeX" : !strcmp(isa, "avx2") ? "Haswell" : "Prescott", 0);
#endif
}

struct library {
    const char *name, *path;        /* path NULL: the build found none */
    void (*before)(void);           /* it is loaded; NULL: nothing */
};

/* cmake/Blas.cmake looks for them. */
#ifndef HONE_OPENBLAS
#define HONE_OPENBLAS NULL
#endif
#ifndef HONE_BLIS
#define HONE_BLIS NULL
#endif
static const struct library openblas = {"openblas", HONE_OPENBLAS, before_openblas}, blis = {"blis", HONE_BLIS, NULL};

/* The faster one first: docs/performance.md. */
#if defined(__x86_64__)
static const struct library *const libraries[] = {&openblas, &blis};
#else
static const struct library *const libraries[] = {&blis, &openblas};
#endif

/* ---- the check, once per machine and library ---- */

static const char *const verdicts[] = {"right", "wrong", NULL};

/* The machine, and which file it is: what replaces it has another length or time. False: it cannot be told. */
static bool write_identity(const struct library *l, int threads, char *key, size_t size)
{
    struct stat s;
    char model[96];
    cpu_model_read(model, sizeof model);
    return stat(l->path, &s) == 0 &&
           snprintf(key, size, "%s, %s: the library '%s' of %lld bytes from %lld.%09ld on %d threads at once", model, cpu_isa_name(),
                    l->path, (long long)s.st_size, (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec, threads) < (int)size;
}

enum verdict { RIGHT, WRONG, UNKNOWN };

/* Remembered, or found out now. */
static enum verdict judge(const struct library *l, sgemm_fn *sgemm)
{
    const int cores = cpu_usable_cores(), threads = cores > 1 ? cores : 2;
    char key[480];
    struct choice c = {.key = key, .variants = verdicts, .variant = -1};
    const bool known = write_identity(l, threads, key, sizeof key);
    if (known && choices_recall(&c, 1) == 0)
        return c.variant == 0 ? RIGHT : WRONG;
    const double start = clock_s();
    struct blas_check check;
    blas_check(&check, sgemm, threads);
    if (!check.done)
        return UNKNOWN;
    c.variant = check.right ? 0 : 1;
    c.us = c.first_us = (clock_s() - start) * 1e6;
    if (known)
        choices_remember(&c, 1, NULL);      /* where it cannot be remembered it is checked every time */
    return check.right ? RIGHT : WRONG;
}

/* ---- the one in use ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sgemm_fn *in_use;
static const char *name = "own kernels", *loaded;
static char about[512] = "none was found: hone's own kernels do all products";
static struct error failed;         /* of loading it, for want of memory */

/* The loader's words for a mapping that it did not get. */
static bool is_want_of_memory(const char *why)
{
    return strstr(why, strerror(ENOMEM)) || strstr(why, "failed to map segment") || strstr(why, "cannot map zero-fill pages");
}

/* It is there and does not load: it is damaged, or something that it needs is missing, or memory is. */
static void note_failure(const struct library *l, const char *why)
{
    if (is_want_of_memory(why)) {
        error_set(&failed, CANNOT, "the library '%s' cannot be loaded: %s", l->path, why);
        return;
    }
    snprintf(about, sizeof about, "'%.128s' cannot be loaded (%.200s): hone's own kernels do its work", l->path, why);
    notice_tell("the library %s", about);
}

static sgemm_fn *load(const struct library *l)
{
    if (!l->path || access(l->path, F_OK))
        return NULL;
    if (l->before)
        l->before();
    loaded = l->name;
    void *handle = dlopen(l->path, RTLD_NOW | RTLD_LOCAL);
    sgemm_fn *sgemm = handle ? (sgemm_fn *)dlsym(handle, "cblas_sgemm") : NULL;
    const char *why = sgemm ? NULL : dlerror();
    if (!sgemm)
        note_failure(l, why ? why : "unknown reason");
    return sgemm;
}

static void refuse(const struct library *l)
{
    snprintf(about, sizeof about, "'%.256s' is wrong when several threads call it at once: hone's own kernels do its work", l->path);
    notice_tell("the library %s (Debian: libopenblas0-pthread and libblis4-serial are right)", about);
}

static void use(const struct library *l, sgemm_fn *sgemm)
{
    in_use = sgemm;
    name = l->name;
    snprintf(about, sizeof about, "%s, '%.256s', checked: the same bits when all threads call it at once", l->name, l->path);
}

/* A library takes memory for packing as soon as another thread calls it (BLIS: 17.4 MB each), and ends the process where it gets none.
 * So it is asked for before, and given back: who is about to run out of memory ends here, with a word. */
enum { PACKING_BYTES = 18 << 20, PACKING_MOST = 16 };       /* for that many threads: a large machine must not be refused too early */

static void choose_library(void)
{
    const int cores = cpu_usable_cores();
    free(xcalloc((size_t)(cores < PACKING_MOST ? cores : PACKING_MOST), PACKING_BYTES));
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !in_use; i++) {
        sgemm_fn *sgemm = load(libraries[i]);
        const enum verdict v = sgemm ? judge(libraries[i], sgemm) : UNKNOWN;
        if (sgemm && v == UNKNOWN)
            error_set(&failed, CANNOT, "the library '%s' cannot be checked: there is no memory or no thread for it", libraries[i]->path);
        else if (v == RIGHT)
            use(libraries[i], sgemm);
        else if (v == WRONG)
            refuse(libraries[i]);
    }
}

sgemm_fn *cpu_blas(void)
{
    pthread_once(&once, choose_library);
    return in_use;
}

enum status cpu_blas_ready(struct error *err)
{
    if (!cpu_blas() && failed.status != OK && err)
        *err = failed;
    return in_use ? OK : failed.status;
}

const char *cpu_blas_name(void)
{
    cpu_blas();
    return name;
}

const char *cpu_blas_about(void)
{
    cpu_blas();
    return about;
}

void blas_multiply(sgemm_fn *sgemm, const struct gemm *g)
{
    const bool ta = g->a_col != 1;
    const int64_t lda = ta ? g->a_col : g->a_row > g->k ? g->a_row : g->k;      /* one row has no stride to speak of */
    inside_enter(loaded ? loaded : "for matrix products");      /* BLIS aborts where it finds no memory for packing */
    sgemm(BLAS_ROW_MAJOR, ta ? BLAS_TRANSPOSED : BLAS_PLAIN, g->b_transposed ? BLAS_TRANSPOSED : BLAS_PLAIN, (int)g->m, (int)g->n,
          (int)g->k, g->scale, g->a, (int)lda, g->b, (int)g->ldb, g->accumulate, g->c, (int)g->ldc);
    inside_leave();
}
