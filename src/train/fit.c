/* Whether a step fits into memory, and which settings would make it fit where it does not, found with the planner. */
#include <sched.h>

#include "core/setup.h"
#include "core/system.h"
#include "passes/passes.h"
#include "train/train_int.h"

enum status train_plan_step(struct step_plan *out, const struct config *c, struct error *err)
{
    struct program *p = NULL;
    struct backend *b = NULL;
    struct exec_memory m;
    enum status st = train_open_backend(&b, c, err);
    if (st == OK)
        st = step_program_for(&p, c, c->train.steps, &(struct step_for){.backend = b}, NULL, err);
    if (st == OK)
        st = exec_plan(&m, p, b, err);
    if (st == OK) {
        const size_t available = b->available(b);
        *out = (struct step_plan){.bytes = exec_memory_bytes(&m), .beside = (double)m.beside,
                                  .kept = (double)(m.parameters + m.state - m.sums), .ops = program_runs_per_step(p)};
        out->fits = available == SIZE_MAX || out->bytes <= (double)available;
        if (out->bytes + out->beside > (double)available)
            out->beside = 0;            /* it is not there, and ops go one by one */
    }
    if (b)
        b->free(b);
    program_free(p);
    return st;
}

enum status train_plan_rank(struct step_plan *out, const struct config *c, int ranks, int machines, struct error *err)
{
    struct comm unheard = {.size = ranks};              /* it is planned, and nothing runs */
    struct config one = *c;
    const int here = (ranks + machines - 1) / machines, cores = system_cores(sched_getaffinity);
    one.dist.comm = ranks > 1 ? &unheard : NULL;
    one.threads = c->threads ? c->threads : cores > here ? cores / here : 1;
    enum status st = division_check(&one, err);
    if (st == OK)
        st = train_plan_step(out, &one, err);
    if (st == OK)
        out->fits = here * out->bytes <= (double)train_available_bytes(c);
    return st;
}

static double planned_bytes(const struct config *c, int64_t total_steps)
{
    struct config whole = *c;
    struct step_plan plan;
    struct error err;
    whole.train.steps = total_steps;
    return train_plan_step(&plan, &whole, &err) == OK ? plan.bytes : -1;
}

static bool fits(const struct config *c, int64_t total_steps, double limit, double *bytes)
{
    *bytes = planned_bytes(c, total_steps);
    return *bytes >= 0 && *bytes <= limit;
}

/* The same samples per step in batches of about `most`: an even split, without a rest if there is one near. */
static void split_batch(struct config_train *t, int64_t most)
{
    const int64_t samples = t->batch_size * t->accumulate;
    t->batch_size = most;
    for (int64_t b = most; b > most / 2; b--)
        if (samples % b == 0) {
            t->batch_size = b;
            break;
        }
    t->accumulate = (samples + t->batch_size - 1) / t->batch_size;
    t->batch_size = (samples + t->accumulate - 1) / t->accumulate;
}

/* About the largest batch that fits with accumulation, by bisection; false: not even one sample does. *bytes gets its plan, or
 * that of one sample. Plans of many layers take a second each: one sample is asked for first, and the last sixteenth is not. */
static bool find_batch(struct config *c, int64_t total_steps, double limit, double *bytes)
{
    struct config next = *c;
    int64_t low = 1, high = c->train.batch_size;        /* low fits, high does not */
    next.train.accumulate = 2;
    next.train.batch_size = 1;
    if (!fits(&next, total_steps, limit, bytes) || c->train.batch_size == 1)
        return false;
    while (high - low > 1 + low / 16) {
        next.train.batch_size = low + (high - low) / 2;
        *(fits(&next, total_steps, limit, bytes) ? &low : &high) = next.train.batch_size;
    }
    split_batch(&c->train, low);
    *bytes = planned_bytes(c, total_steps);
    return true;
}

/* Settings that fit, each with its plan. */
static void step_remedy(const struct config *c, int64_t total_steps, double limit, char *out, size_t size)
{
    struct config other = *c;
    const int recompute = config_pass_find("recompute");
    double bytes;
    int used = 0;
    if (c->optimize.memory && (double)c->optimize.memory * 1e6 > limit) {
        other.optimize.memory = 0;
        if (fits(&other, total_steps, limit, &bytes))
            used = snprintf(out, size, "optimize.memory: 0 (%.0f MB)", bytes / 1e6);
        other.optimize.memory = c->optimize.memory;
    }
    if (!config_pass_is_on(c, recompute)) {
        other.optimize.pass[recompute] = PASS_ON;
        if (fits(&other, total_steps, limit, &bytes))
            used = snprintf(out, size, "optimize.recompute: on (%.0f MB)", bytes / 1e6);
        other.optimize.pass[recompute] = c->optimize.pass[recompute];
    }
    const char *before = used ? " or " : "";
    if (find_batch(&other, total_steps, limit, &bytes))
        snprintf(out + used, size - (size_t)used, "%strain.batch_size: %lld with train.accumulate: %lld (%.0f MB)", before,
                 (long long)other.train.batch_size, (long long)other.train.accumulate, bytes / 1e6);
    else if (!used)
        snprintf(out, size, "a smaller model.seq, model.dim or model.layers: not even a train.batch_size of 1 fits (%.0f MB)",
                 bytes / 1e6);
}

enum status step_refuse(const struct config *c, int64_t total_steps, struct error *err)
{
    struct config free_only = *c;
    free_only.optimize.memory = 0;
    const double limit = step_memory_limit(&free_only);
    char remedy[256];
    if (!err->no_memory)
        return err->status;
    if (limit == 0)
        return error_add(err, "; try a smaller train.batch_size, model.seq, model.dim or model.layers");
    step_remedy(c, total_steps, limit, remedy, sizeof remedy);
    if (setup_check("what would fit", err) != OK)
        return err->status;
    return error_add(err, ", and %.0f MB are free; try %s", (double)train_available_bytes(c) / 1e6, remedy);
}

const char *train_memory_warning(const struct config *c, double bytes, char out[MEMORY_WORDS])
{
    const bool recompute = config_pass_is_on(c, config_pass_find("recompute"));
    if (!c->optimize.memory || bytes <= (double)c->optimize.memory * 1e6)
        return NULL;
    snprintf(out, MEMORY_WORDS, "optimize.memory is %lld MB, and a step is planned to take %.2f MB%s; try %s", (long long)c->optimize.memory, bytes / 1e6,
             recompute ? ", with all computed again that can be" : "",
             recompute ? "a smaller train.batch_size or model.seq" : "optimize.recompute: on");
    return out;
}

/* ---- the largest batch ---- */

/* What values of a step take; kernels' scratch is not in it, so that no backend is asked. */
static enum status bytes_at(const struct config *c, int64_t batch, double *bytes, struct error *err)
{
    struct config at = *c;
    struct program *p = NULL;
    at.train.batch_size = batch;
    const enum status st = step_program_for(&p, &at, at.train.steps, &(struct step_for){0}, NULL, err);
    *bytes = st == OK ? pass_planned_bytes(p) : 0;
    program_free(p);
    return st;
}

/* What is known of the plans: `low` fits, `high` does not. */
struct bracket {
    int64_t low, high;
    double low_bytes, high_bytes;           /* high_bytes 0: not known */
};

/* Plans are nearly straight lines in the batch: each guess lies where the line through the last two meets the limit, and inside what is
 * known. Between two that are known the last sixteenth is not asked for. */
static enum status largest_batch(const struct config *c, double limit, struct bracket *k, struct error *err)
{
    enum status st = OK;
    double slope = k->low > 1 ? k->low_bytes / (double)k->low : 0, bytes;
    for (int64_t at = 2 * k->low; st == OK && k->high - k->low > 1 + (k->high_bytes > 0 ? k->low / 16 : 0);) {
        const double guess = slope > 0 ? (double)k->low + (limit - k->low_bytes) / slope : (double)at;
        at = guess < (double)k->high ? (int64_t)guess : k->high - 1;
        at = at > k->low ? at : k->low + 1 + k->low / 16;
        at = at < k->high ? at : k->high - 1;
        st = bytes_at(c, at, &bytes, err);
        if (bytes <= limit) {
            slope = k->high_bytes > 0 ? (k->high_bytes - bytes) / (double)(k->high - at) : (bytes - k->low_bytes) / (double)(at - k->low);
            k->low = at;
            k->low_bytes = bytes;
        } else {
            slope = (bytes - k->low_bytes) / (double)(at - k->low);
            k->high = at;
            k->high_bytes = bytes;
        }
    }
    return st;
}

/* The most that is asked for: a larger one that the config has is, too. */
static int64_t most_asked(const struct config_train *t) { return t->batch_size > LARGEST_BATCH_MOST ? t->batch_size : LARGEST_BATCH_MOST; }

/* Between what is known to fit and what is known not to: of the config's own batch it is said, so it is asked. */
static enum status try_own(const struct config *c, double limit, struct bracket *k, struct error *err)
{
    const int64_t own = c->train.batch_size;
    double bytes;
    if (own <= k->low || own >= k->high)
        return OK;
    const enum status st = bytes_at(c, own, &bytes, err);
    if (st == OK && bytes <= limit) {
        k->low = own;
        k->low_bytes = bytes;
    }
    return st;
}

/* What fits into one limit fits into the next. */
static enum status largest_batches(const struct config *c, const double *bytes, int64_t *batch, int n, struct error *err)
{
    struct bracket k = {.low = 1};
    enum status st = bytes_at(c, 1, &k.low_bytes, err);
    for (int i = 0; i < n && st == OK; i++) {
        k.high = most_asked(&c->train) + 1;
        k.high_bytes = 0;
        batch[i] = 0;
        if (k.low_bytes > bytes[i])
            continue;
        st = largest_batch(c, bytes[i], &k, err);
        if (st == OK)
            st = try_own(c, bytes[i], &k, err);
        batch[i] = k.low;
    }
    return st;
}

enum status train_largest_batches(const struct config *c, int savers, const double *bytes, int64_t *batch, int n, struct error *err)
{
    struct config there = *c;
    const bool recompute = savers & SAVE_RECOMPUTE;
    there.device = DEVICE_CUDA;
    there.optimize.memory = recompute;      /* of 1 MB there is never enough: then it saves what it can */
    there.optimize.pass[config_pass_find("recompute")] = recompute ? PASS_ON : PASS_OFF;
    if (savers & SAVE_BF16)
        there.optimize.precision = PRECISION_BF16;
    return largest_batches(&there, bytes, batch, n, err);
}

/* ---- what to do about it ---- */

static const char *savers_words(int savers)
{
    static const char *const words[SAVERS] = {"", "optimize.precision: bf16", "optimize.recompute: on", "bf16 and recompute"};
    return words[savers];
}

/* Whether they are worth a word: more than what is on already. */
static bool saves(const struct memory_fit *f, int savers) { return f->most[savers] > f->most[0] && !(f->narrow && (savers & SAVE_BF16)); }

static void put_most(const struct memory_fit *f, int64_t asked, char out[FIT_WORDS], size_t used)
{
    for (int s = 0; s < SAVERS && used < FIT_WORDS; s++)
        if (!s || saves(f, s))
            used += (size_t)snprintf(out + used, FIT_WORDS - used, "%s%s%lld%s%s", s ? ", " : "", f->most[s] >= asked ? "over " : "",
                                     (long long)f->most[s], s ? " with " : "", savers_words(s));
}

const char *memory_fit_words(const struct memory_fit *f, const struct config_train *train, char out[FIT_WORDS])
{
    const int64_t batch = train->batch_size;
    int need = 0, best = 0;
    for (int s = SAVERS - 1; s >= 0; s--)
        if (!s || saves(f, s)) {
            need = f->most[s] >= batch ? s : need;
            best = f->most[s] > f->most[best] ? s : best;
        }
    size_t used = (size_t)snprintf(out, FIT_WORDS, "on a GPU of %d GB: a batch of %lld ", f->gb, (long long)batch);
    if (f->most[0] >= batch)
        used += (size_t)snprintf(out + used, FIT_WORDS - used, "fits; largest: ");
    else if (f->most[need] >= batch)
        used += (size_t)snprintf(out + used, FIT_WORDS - used, "fits with %s; largest: ", savers_words(need));
    else if (f->most[best] > 0) {
        struct config_train parts = *train;
        split_batch(&parts, f->most[best]);
        used += (size_t)snprintf(out + used, FIT_WORDS - used, "does not fit: try %lld%s%s with train.accumulate: %lld; largest: ", (long long)parts.batch_size,
                                 best ? ", " : "", savers_words(best), (long long)parts.accumulate);
    } else
        used += (size_t)snprintf(out + used, FIT_WORDS - used, "does not fit, and no other: the model is too large");
    if (f->most[best] > 0)
        put_most(f, most_asked(train), out, used);
    return out;
}

enum status evaluation_refuse(const struct config *c, struct error *err)
{
    return err->no_memory ? error_add(err, " for evaluation; try a smaller eval.batch_size than %lld", (long long)c->eval.batch_size)
                          : err->status;
}
