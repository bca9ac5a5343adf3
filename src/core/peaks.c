/* What to hold products and a working set against, and the cache file of peaks: {"version": 1, "entries": [...]}; see peaks.h. */
#include "core/peaks.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cache.h"
#include "core/peaks_int.h"

enum { VERSION = 1, ENTRIES_MOST = 64, PRIVATE_LEVELS = 2, MEMORY = CACHE_LEVELS - 1 };

static const char file_name[] = "peaks.json";

struct products_peak peaks_products(const struct peaks *p, bool bf16)
{
    const bool has = bf16 && p->bf16_gflops > 0;
    return (struct products_peak){has ? p->bf16_gflops : p->gemm_gflops, has};
}

const char *products_peak_type(struct products_peak peak) { return peak.bf16 ? "bf16" : "f32"; }

double products_peak_percent(struct products_peak peak, double flops, double us)
{
    return peak.gflops > 0 && us > 0 ? 100 * flops / us / 1e3 / peak.gflops : 0;
}

void products_peak_raise(struct products_peak *peak, double flops, double us)
{
    const double reached = us > 0 ? flops / us / 1e3 : 0;
    if (peak->gflops > 0 && isfinite(reached) && reached > peak->gflops)
        peak->gflops = reached;
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

static bool sound(const struct peaks *p)
{
    bool good = p->threads >= 1 && isfinite(p->gemm_gflops) && p->gemm_gflops > 0 && p->copy_gb_per_s[MEMORY] > 0 &&
                isfinite(p->bf16_gflops) && p->bf16_gflops >= 0;
    for (int level = 0; level < CACHE_LEVELS; level++)
        good = good && isfinite(p->copy_gb_per_s[level]) && p->copy_gb_per_s[level] >= 0 &&
               isfinite(p->cache_bytes[level]) && p->cache_bytes[level] >= 0;
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

/* Entries from before there was such a peak have none, and are of machines without bf16 products: others have another
 * fingerprint since. */
static bool read_bf16(struct peaks *p, const json_t *j)
{
    const json_t *bf16 = json_object_get(j, "bf16_gflops");
    p->bf16_gflops = json_number_value(bf16);
    return !bf16 || json_is_number(bf16);
}

static bool read_entry(struct peaks *p, const json_t *j)
{
    const json_t *threads = json_object_get(j, "threads"), *gemm = json_object_get(j, "gemm_gflops");
    const char *machine = json_string_value(json_object_get(j, "machine"));
    const json_int_t n = json_integer_value(threads);
    *p = (struct peaks){.threads = n >= 1 && n <= INT_MAX ? (int)n : 0, .gemm_gflops = json_number_value(gemm)};
    if (!machine || strlen(machine) >= sizeof p->machine)
        return false;
    strcpy(p->machine, machine);
    return read_bf16(p, j) && read_levels(p->copy_gb_per_s, json_object_get(j, "copy_gb_per_s")) &&
           read_levels(p->cache_bytes, json_object_get(j, "cache_bytes")) && sound(p);
}

/* A level's list; takes four numbers that are finite. */
static json_t *levels(const double x[CACHE_LEVELS]) { return json_pack("[f, f, f, f]", x[0], x[1], x[2], x[3]); }

static json_t *entry(const struct peaks *p)
{
    return json_pack("{s:s, s:i, s:f, s:f, s:o, s:o}", "machine", p->machine, "threads", p->threads, "gemm_gflops",
                     p->gemm_gflops, "bf16_gflops", p->bf16_gflops, "copy_gb_per_s", levels(p->copy_gb_per_s), "cache_bytes", levels(p->cache_bytes));
}

static bool same_key(const struct peaks *p, const char *machine, int threads)
{
    return p->threads == threads && strcmp(p->machine, machine) == 0;
}

bool peaks_parse(struct peaks *out, const char *text, size_t size, const char *machine, int threads)
{
    json_t *root = cache_parse(text, size, VERSION);
    const json_t *entries = json_object_get(root, "entries");
    bool found = false;
    for (size_t i = 0; !found && i < json_array_size(entries); i++) {
        struct peaks p;
        found = read_entry(&p, json_array_get(entries, i)) && same_key(&p, machine, threads);
        if (found)
            *out = p;
    }
    json_decref(root);
    return found;
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

bool peaks_recall(struct peaks *out, const char *machine, int threads)
{
    char *text;
    size_t size;
    if (!cache_read(file_name, &text, &size))
        return false;
    const bool found = peaks_parse(out, text, size, machine, threads);
    free(text);
    return found;
}

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
    bool rose = p->gemm_gflops > RISES * over->gemm_gflops || p->bf16_gflops > RISES * over->bf16_gflops;
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

void peaks_keep_best(struct peaks *p, const struct peaks *other)
{
    if (other->gemm_gflops > p->gemm_gflops)
        p->gemm_gflops = other->gemm_gflops;
    if (other->bf16_gflops > p->bf16_gflops)
        p->bf16_gflops = other->bf16_gflops;
    for (int i = 0; i < CACHE_LEVELS; i++)
        if (other->copy_gb_per_s[i] > p->copy_gb_per_s[i])
            p->copy_gb_per_s[i] = other->copy_gb_per_s[i];
}
