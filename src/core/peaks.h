/* What a machine reaches: the measured ceilings that rooflines and MFU divide by, and the file that remembers them. */
#ifndef HONE_CORE_PEAKS_H
#define HONE_CORE_PEAKS_H

#include <stdbool.h>

#include "core/error.h"

enum { CACHE_LEVELS = 4 };                  /* L1, L2, L3, memory */

enum numbers { NUMBERS_F32, NUMBERS_TF32, NUMBERS_BF16, NUMBERS_F16, NUMBERS };      /* that products are of */
const char *numbers_name(enum numbers n);   /* "f32", "tf32", "bf16", "f16" */
const char *numbers_key(enum numbers n);    /* of their peak in documents: "gemm_gflops" for f32, "bf16_gflops", ... */

struct peaks {
    int threads;
    double gflops[NUMBERS];                 /* of large products by their operands, sums in f32; 0: the device has no such products. Of f32
                                             * on a CPU: the larger of the two below, or what a step or an op was seen to reach */
    double registers_gflops;                /* multiply-adds of f32 that stay in registers; 0: not measured (a GPU) */
    double registers_bf16_gflops;           /* the same of bf16 with f32 sums; 0: there are none, or as above */
    double near_gflops[NUMBERS];            /* of small products by our own kernel whose operands stay in a core's own cache; 0: none, or as above */
    double clock;                           /* as in struct pace; 0: as above */
    double product_gflops;                  /* the fastest product of f32, whoever made it; 0: as above */
    double copy_gb_per_s[CACHE_LEVELS];     /* read + written, data in that level; 0: no such level. */
    double cache_bytes[CACHE_LEVELS];       /* per core for L1 and L2, in all for L3, installed for memory */
    struct {                                /* of a GPU; all 0: this is none */
        double replayed_us, launched_us;    /* per kernel that does nothing: one of many in a graph; each started by the host */
        double pinned_gb_per_s, pageable_gb_per_s;      /* copied to it from memory of the host */
    } gpu;
    char machine[160];                      /* fingerprint: CPU, cores, instruction set with bf16 where it has it, BLAS; or the GPU */
};

/* What cores have in some moment. */
struct pace {
    double gflops;                          /* small products, as near_gflops, of all threads together; 0: not known */
    double clock;                           /* operations that wait for each other, a nanosecond and thread: they go as the clock does */
};

/* Why cores whose products and clock are at such a part of their best have no more, as a clause; NULL: they have nearly all, or it is not known (0). */
enum { PACE_WORDS = 160 };
const char *pace_words(double products, double clock, char words[PACE_WORDS]);

/* The peak that products are held against. */
struct products_peak {
    double gflops;                          /* 0: not known */
    enum numbers numbers;                   /* of products with such operands */
    bool registers;                         /* it is what registers do; else what a product reached */
};
const char *products_peak_word(struct products_peak peak);      /* "registers", "product" */
/* Operands of a kind that the machine has no products of are rounded and multiplied in f32: its peak is theirs, then. */
struct products_peak peaks_products(const struct peaks *p, enum numbers n);
/* Where the machine does have them. */
bool peaks_has(const struct peaks *p, enum numbers n);
/* What `flops` in `us` are of it: MFU, where they are the model's; 0 where either is not known. */
double products_peak_percent(struct products_peak peak, double flops, double us);
/* A step that beats a known peak proves it wrong: raised to what was reached, so that none is above 100 %. */
void products_peak_raise(struct products_peak *peak, double flops, double us);

/* The smallest level that holds `bytes` of data, and the bandwidth at which they can be worked on there. */
int peaks_level(const struct peaks *p, double bytes);
double peaks_bandwidth(const struct peaks *p, double bytes);

/* The remembered peaks of this machine and thread count, from $XDG_CACHE_HOME/hone/peaks.json or ~/.cache/hone/peaks.json.
 * False when there are none, or the file is damaged. */
bool peaks_recall(struct peaks *out, const char *machine, int threads);
/* The best of those of any machine whose name begins with `hardware` and a comma: with whatever library for products they were measured. */
bool peaks_recall_hardware(struct peaks *out, const char *hardware, int threads);
/* Keeps the larger of each of two measurements of one machine. */
void peaks_keep_best(struct peaks *p, const struct peaks *other);
/* Measures until it is stable: round after round, the best of each kept, until none has risen for some rounds, or there were many.
 * A round that is disturbed shows less than the machine can, never more. *out holds what does not change between rounds. */
typedef void peaks_round_fn(void *context, struct peaks *round);
enum { PEAKS_QUIET_ROUNDS = 3, PEAKS_ROUNDS_MOST = 12 };
int peaks_settle(struct peaks *out, peaks_round_fn *measure, void *context);      /* the number of rounds */
/* Adds an entry, or raises the one that is there: what is remembered is the best that the machine ever showed. A cache that cannot be
 * written is no error worth stopping for, so the caller may ignore it. */
enum status peaks_remember(const struct peaks *p, struct error *err);
/* Forgets what this machine showed, on any number of threads. */
enum status peaks_forget(const char *machine, struct error *err);

#endif
