/* What to hold products and a working set against, and the cache file of peaks: {"version": 6, "entries": [...]}; see peaks.h. */
#include "core/peaks.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cache.h"
#include "core/peaks_int.h"

enum { VERSION = 7, ENTRIES_MOST = 64, PRIVATE_LEVELS = 2, MEMORY = CACHE_LEVELS - 1 };

static const char file_name[] = "peaks.json";

/* The first key is older than the others. */
static const struct { const char *name, *key; } kinds[NUMBERS] = {
    [NUMBERS_F32] = {"f32", "gemm_gflops"}, [NUMBERS_TF32] = {"tf32", "tf32_gflops"},
    [NUMBERS_BF16] = {"bf16", "bf16_gflops"}, [NUMBERS_F16] = {"f16", "f16_gflops"}};

const char *numbers_name(enum numbers n) { return kinds[n].name; }
const char *numbers_key(enum numbers n) { return kinds[n].key; }

bool peaks_has(const struct peaks *p, enum numbers n) { return p->gflops[n] > 0; }

struct products_peak peaks_products(const struct peaks *p, enum numbers n)
{
    const enum numbers taken = peaks_has(p, n) ? n : NUMBERS_F32;
    return (struct products_peak){p->gflops[taken], taken, taken == NUMBERS_F32 && p->registers_gflops >= p->gflops[taken] && p->registers_gflops > 0};
}

/* Of their best: slow products, a clock as high as ever, and what products have beyond the clock where nobody shares the cores. */
static const double SLOW_PRODUCTS = 0.8, FULL_CLOCK = 0.95, OWN_CORE = 0.9;

const char *pace_words(double products, double clock, char words[PACE_WORDS])
{
    static const char shared[] = "other threads run on the same cores (hyperthreads, of another system or of this one)";
    if (!(products > 0 && products < SLOW_PRODUCTS && clock > 0))
        return NULL;
    if (products > OWN_CORE * clock)
        snprintf(words, PACE_WORDS, "heat or power holds their clock down, at %.0f %% of its best", 100 * clock);
    else if (clock < FULL_CLOCK)
        snprintf(words, PACE_WORDS, "their clock is at %.0f %% of its best, and %s", 100 * clock, shared);
    else
        snprintf(words, PACE_WORDS, "their clock is as high as ever, so %s", shared);
    return words;
}

const char *products_peak_word(struct products_peak peak) { return peak.registers ? "registers" : "product"; }

double products_peak_percent(struct products_peak peak, double flops, double us)
{
    return peak.gflops > 0 && us > 0 ? 100 * flops / us / 1e3 / peak.gflops : 0;
}

void products_peak_raise(struct products_peak *peak, double flops, double us)
{
    const double reached = us > 0 ? flops / us / 1e3 : 0;
    if (peak->gflops > 0 && isfinite(reached) && reached > peak->gflops)
        *peak = (struct products_peak){reached, peak->numbers, false};
}

int peaks_level(const struct peaks *p, double bytes)
{
    for (int level = 0; level < MEMORY; level++) {
        const double cores = level < PRIVATE_LEVELS && p->threads > 1 ? p->threads : 1;
        if (p->copy_gb_per_s[level] > 0 && p->cache_bytes[level] * cores >= bytes)
            return level;
    }
    return MEMORY;
}

double peaks_bandwidth(const struct peaks *p, double bytes) { return p->copy_gb_per_s[peaks_level(p, bytes)]; }

static bool is_rate(double x) { return isfinite(x) && x >= 0; }

/* Numbers that a CPU has and a GPU has not. */
static const struct { const char *key; size_t at; } of_cpu[] = {
    {"registers_gflops", offsetof(struct peaks, registers_gflops)}, {"registers_bf16_gflops", offsetof(struct peaks, registers_bf16_gflops)},
    {"product_gflops", offsetof(struct peaks, product_gflops)}, {"near_gflops", offsetof(struct peaks, near_gflops[NUMBERS_F32])},
    {"near_bf16_gflops", offsetof(struct peaks, near_gflops[NUMBERS_BF16])}, {"clock", offsetof(struct peaks, clock)}};
enum { OF_CPU = sizeof of_cpu / sizeof *of_cpu };

static double *set_of_cpu(struct peaks *p, int i) { return (double *)((char *)p + of_cpu[i].at); }
static double get_of_cpu(const struct peaks *p, int i) { return *(const double *)((const char *)p + of_cpu[i].at); }

static bool sound(const struct peaks *p)
{
    bool good = p->threads >= 1 && p->gflops[NUMBERS_F32] > 0 && p->copy_gb_per_s[MEMORY] > 0 && is_rate(p->gpu.replayed_us) &&
                is_rate(p->gpu.launched_us) && is_rate(p->gpu.pinned_gb_per_s) && is_rate(p->gpu.pageable_gb_per_s);
    for (int i = 0; i < OF_CPU; i++)
        good = good && is_rate(get_of_cpu(p, i));
    for (enum numbers n = 0; n < NUMBERS; n++)
        good = good && is_rate(p->gflops[n]);
    for (int level = 0; level < CACHE_LEVELS; level++)
        good = good && is_rate(p->copy_gb_per_s[level]) && is_rate(p->cache_bytes[level]);
    return good && p->machine[0] && memchr(p->machine, '\0', sizeof p->machine);
}

static bool read_levels(double to[CACHE_LEVELS], const json_t *list)
{
    bool good = json_array_size(list) == CACHE_LEVELS;
    for (size_t i = 0; good && i < CACHE_LEVELS; i++) {
        good = json_is_number(json_array_get(list, i));
        to[i] = json_number_value(json_array_get(list, i));
    }
    return good;
}

/* What is not there is 0: of machines without such products, or of an entry that is older than the key. */
static bool read_number(double *to, const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    *to = json_number_value(x);
    return !x || json_is_number(x);
}

static bool read_gpu(struct peaks *p, const json_t *j)
{
    return read_number(&p->gpu.replayed_us, j, "replayed_us") && read_number(&p->gpu.launched_us, j, "launched_us") &&
           read_number(&p->gpu.pinned_gb_per_s, j, "pinned_gb_per_s") && read_number(&p->gpu.pageable_gb_per_s, j, "pageable_gb_per_s");
}

static bool read_entry(struct peaks *p, const json_t *j)
{
    const json_int_t n = json_integer_value(json_object_get(j, "threads"));
    const char *machine = json_string_value(json_object_get(j, "machine"));
    *p = (struct peaks){.threads = n >= 1 && n <= INT_MAX ? (int)n : 0};
    if (!machine || strlen(machine) >= sizeof p->machine)
        return false;
    strcpy(p->machine, machine);
    bool good = read_gpu(p, json_object_get(j, "gpu"));
    for (int i = 0; i < OF_CPU; i++)
        good = good && read_number(set_of_cpu(p, i), j, of_cpu[i].key);
    for (enum numbers k = 0; k < NUMBERS; k++)
        good = good && read_number(&p->gflops[k], j, numbers_key(k));
    return good && read_levels(p->copy_gb_per_s, json_object_get(j, "copy_gb_per_s")) &&
           read_levels(p->cache_bytes, json_object_get(j, "cache_bytes")) && sound(p);
}

/* A level's list; takes four numbers that are finite. */
static json_t *levels(const double x[CACHE_LEVELS]) { return json_pack("[f, f, f, f]", x[0], x[1], x[2], x[3]); }

static json_t *entry(const struct peaks *p)
{
    json_t *j = json_pack("{s:s, s:i}", "machine", p->machine, "threads", p->threads);
    for (enum numbers n = 0; n < NUMBERS; n++)
        if (j && (n == NUMBERS_F32 || n == NUMBERS_BF16 || peaks_has(p, n)))
            json_object_set_new(j, numbers_key(n), json_real(p->gflops[n]));
    for (int i = 0; i < OF_CPU; i++)
        if (j && get_of_cpu(p, i) > 0)
            json_object_set_new(j, of_cpu[i].key, json_real(get_of_cpu(p, i)));
    if (j && p->gpu.launched_us > 0)
        json_object_set_new(j, "gpu", json_pack("{s:f, s:f, s:f, s:f}", "replayed_us", p->gpu.replayed_us, "launched_us",
                                                p->gpu.launched_us, "pinned_gb_per_s", p->gpu.pinned_gb_per_s, "pageable_gb_per_s",
                                                p->gpu.pageable_gb_per_s));
    json_t *rest = json_pack("{s:o, s:o}", "copy_gb_per_s", levels(p->copy_gb_per_s), "cache_bytes", levels(p->cache_bytes));
    if (j && rest)
        json_object_update(j, rest);
    json_decref(rest);
    return j;
}

static bool same_key(const struct peaks *p, const char *machine, int threads)
{
    return p->threads == threads && strcmp(p->machine, machine) == 0;
}

typedef bool is_key_fn(const struct peaks *p, const char *name, int threads);

static bool is_of_hardware(const struct peaks *p, const char *hardware, int threads)
{
    const size_t n = strlen(hardware);
    return p->threads == threads && !strncmp(p->machine, hardware, n) && p->machine[n] == ',';
}

/* The best of all that are of this key. */
static bool parse(struct peaks *out, const char *text, size_t size, is_key_fn *is_key, const char *name, int threads)
{
    json_t *root = cache_parse(text, size, VERSION);
    const json_t *entries = json_object_get(root, "entries");
    bool found = false;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        struct peaks p;
        if (!read_entry(&p, json_array_get(entries, i)) || !is_key(&p, name, threads))
            continue;
        if (found)
            peaks_keep_best(out, &p);
        else
            *out = p;
        found = true;
    }
    json_decref(root);
    return found;
}

bool peaks_parse(struct peaks *out, const char *text, size_t size, const char *machine, int threads)
{
    return parse(out, text, size, same_key, machine, threads);
}

static char *print_entries(json_t *entries)
{
    json_t *root = json_pack("{s:i, s:o}", "version", VERSION, "entries", entries);
    char *out = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    return out;
}

/* Newest first, so that the oldest fall out of a full cache. */
char *peaks_print(const struct peaks *p, const char *text, size_t size)
{
    struct peaks best = *p, known;
    if (sound(p) && peaks_parse(&known, text, size, p->machine, p->threads))
        peaks_keep_best(&best, &known);
    json_t *mine = sound(&best) ? entry(&best) : NULL;
    if (!mine)
        return NULL;
    json_t *root = cache_parse(text, size, VERSION), *kept = json_array();
    const json_t *entries = json_object_get(root, "entries");
    json_array_append_new(kept, mine);
    for (size_t i = 0; i < json_array_size(entries) && json_array_size(kept) < ENTRIES_MOST; i++) {
        struct peaks other;
        if (read_entry(&other, json_array_get(entries, i)) && !same_key(&other, p->machine, p->threads))
            json_array_append_new(kept, entry(&other));
    }
    json_decref(root);
    return print_entries(kept);
}

char *peaks_print_without(const char *machine, const char *text, size_t size)
{
    json_t *root = cache_parse(text, size, VERSION), *kept = json_array();
    const json_t *entries = json_object_get(root, "entries");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        struct peaks other;
        if (read_entry(&other, json_array_get(entries, i)) && strcmp(other.machine, machine))
            json_array_append_new(kept, entry(&other));
    }
    json_decref(root);
    return print_entries(kept);
}

static bool recall(struct peaks *out, is_key_fn *is_key, const char *name, int threads)
{
    char *text;
    size_t size;
    if (!cache_read(file_name, &text, &size))
        return false;
    const bool found = parse(out, text, size, is_key, name, threads);
    free(text);
    return found;
}

bool peaks_recall(struct peaks *out, const char *machine, int threads) { return recall(out, same_key, machine, threads); }
bool peaks_recall_hardware(struct peaks *out, const char *hardware, int threads) { return recall(out, is_of_hardware, hardware, threads); }

static enum status merge(const struct peaks *p, struct error *err)
{
    char *old = NULL;
    size_t size = 0;
    cache_read(file_name, &old, &size);
    char *text = peaks_print(p, old ? old : "", size);
    free(old);
    if (!text)
        return error_set(err, BAD_INPUT, "the peaks of '%.159s' are not remembered: they must be above 0 and finite, "
                                         "and the machine's name UTF-8", p->machine);
    const enum status st = cache_replace(file_name, text, err);
    free(text);
    return st;
}

enum status peaks_remember(const struct peaks *p, struct error *err)
{
    const int lock = cache_lock();
    const enum status st = merge(p, err);
    if (lock >= 0)
        close(lock);
    return st;
}

enum status peaks_forget(const char *machine, struct error *err)
{
    const int lock = cache_lock();
    char *old = NULL, *text = NULL;
    size_t size = 0;
    enum status st = OK;
    if (cache_read(file_name, &old, &size))
        text = peaks_print_without(machine, old, size);
    if (text)
        st = cache_replace(file_name, text, err);
    free(old);
    free(text);
    if (lock >= 0)
        close(lock);
    return st;
}

static const double RISES = 1.005;          /* less is the clock's word */

static bool rises(const struct peaks *p, const struct peaks *over)
{
    bool rose = false;
    for (enum numbers n = 0; n < NUMBERS; n++)
        rose |= p->gflops[n] > RISES * over->gflops[n] || p->near_gflops[n] > RISES * over->near_gflops[n];
    for (int i = 0; i < CACHE_LEVELS; i++)
        rose |= p->copy_gb_per_s[i] > RISES * over->copy_gb_per_s[i];
    return rose;
}

int peaks_settle(struct peaks *out, peaks_round_fn *measure, void *context)
{
    int n = 0;
    for (int quiet = 0; quiet < PEAKS_QUIET_ROUNDS && n < PEAKS_ROUNDS_MOST; n++) {
        struct peaks round = *out;
        measure(context, &round);
        quiet = rises(&round, out) ? 0 : quiet + 1;
        peaks_keep_best(out, &round);
    }
    return n;
}

static void keep_more(double *x, double other) { *x = other > *x ? other : *x; }
static void keep_less(double *x, double other) { *x = other > 0 && (*x <= 0 || other < *x) ? other : *x; }

void peaks_keep_best(struct peaks *p, const struct peaks *other)
{
    for (enum numbers n = 0; n < NUMBERS; n++)
        keep_more(&p->gflops[n], other->gflops[n]);
    for (int i = 0; i < OF_CPU; i++)
        keep_more(set_of_cpu(p, i), get_of_cpu(other, i));
    for (int i = 0; i < CACHE_LEVELS; i++)
        keep_more(&p->copy_gb_per_s[i], other->copy_gb_per_s[i]);
    if (p->copy_gb_per_s[MEMORY - 1] > 0)       /* what comes from memory comes through the last cache */
        keep_more(&p->copy_gb_per_s[MEMORY - 1], p->copy_gb_per_s[MEMORY]);
    keep_less(&p->gpu.replayed_us, other->gpu.replayed_us);
    keep_less(&p->gpu.launched_us, other->gpu.launched_us);
    keep_more(&p->gpu.pinned_gb_per_s, other->gpu.pinned_gb_per_s);
    keep_more(&p->gpu.pageable_gb_per_s, other->gpu.pageable_gb_per_s);
}
