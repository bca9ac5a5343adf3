/* Everything the profile knows as one JSON document: report.json, and the data of the page. */
#include <math.h>
#include <stdlib.h>

#include "core/json_whole.h"
#include "report/report_int.h"

#define N report_number
#define W report_words

static json_t *model(const struct profile *p)
{
    return json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:I}", "name", W(p->name), "arch", W(p->arch), "parameters",
                     (json_int_t)p->parameters, "layers", (json_int_t)p->layers, "batch", (json_int_t)p->batch, "seq",
                     (json_int_t)p->seq, "accumulate", (json_int_t)p->accumulate);
}

/* What only a GPU has: what starting a kernel costs, and the way to its memory. */
static json_t *gpu_peaks(const struct peaks *p)
{
    return p->gpu.launched_us > 0
               ? json_pack("{s:o,s:o,s:o,s:o}", "replayed_us", N(p->gpu.replayed_us), "launched_us", N(p->gpu.launched_us),
                           "pinned_gb_per_s", N(p->gpu.pinned_gb_per_s), "pageable_gb_per_s", N(p->gpu.pageable_gb_per_s))
               : json_null();
}

static json_t *known(double x) { return x > 0 ? N(x) : json_null(); }

json_t *report_peaks(const struct profile *p)
{
    const struct peaks *peaks = &p->peaks;
    json_t *levels = json_array();
    for (int i = 0; i < CACHE_LEVELS; i++)
        if (peaks->copy_gb_per_s[i] > 0)
            levels = report_array(levels, json_pack("{s:s,s:o,s:o,s:o}", "level", report_level_name(i), "gb_per_s",
                                                    N(peaks->copy_gb_per_s[i]), "bytes", json_whole(peaks->cache_bytes[i]),
                                                    "ridge_flops_per_byte",
                                                    N(report_ratio(p->mfu_peak.gflops, peaks->copy_gb_per_s[i]))));
    json_t *products = json_object();
    for (enum numbers n = 0; n < NUMBERS && products; n++)
        json_object_set_new(products, numbers_key(n), n == NUMBERS_F32 || peaks_has(peaks, n) ? N(peaks->gflops[n]) : json_null());
    return report_merge(json_pack("{s:i,s:o,s:o,s:o,s:o,s:o}", "threads", peaks->threads, "levels", levels, "registers_gflops", known(peaks->registers_gflops), "registers_bf16_gflops", known(peaks->registers_bf16_gflops),
                                  "product_gflops", known(peaks->product_gflops), "gpu", gpu_peaks(peaks)), products);
}

/* How the GPU was, and how its kernels were seen. */
static json_t *gpu(const struct profile *p)
{
    const struct gpu_watch *w = &p->watch;
    char why[SLOWED_WORDS];
    if (!p->gpu)
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", W(p->device_name), "ops_timed_by", W(p->timed_by),
                     "kernels_per_step", p->kernels_per_step > 0 ? N(p->kernels_per_step) : json_null(), "looks", w->looks, "busy_percent",
                     N(w->looks ? gpu_watch_busy_percent(w) : NAN), "memory_used_bytes", json_whole(w->looks ? w->used_most_bytes : NAN), "memory_bytes",
                     json_whole(w->looks ? w->total_bytes : NAN), "watts", N(w->looks ? gpu_watch_watts(w) : NAN), "celsius_most",
                     N(w->looks ? w->celsius_most : NAN), "sm_mhz_least", N(w->looks ? w->sm_least_mhz : NAN), "sm_mhz_most",
                     N(w->looks ? w->sm_most_mhz : NAN), "held_down_by", W(w->slowed ? gpu_slowed_words(w->slowed, why) : NULL));
}

static json_t *machine(const struct profile *p)
{
    return json_pack("{s:i,s:o,s:o,s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "usable_cores", p->usable_cores, "gpu", gpu(p), "device", W(p->device), "isa", W(p->isa), "blas", W(p->blas),
                     "threads", p->threads, "fingerprint", W(p->peaks.machine), "peaks", report_peaks(p), "preemptions_per_s",
                     N(p->preemptions_per_s), "delayed_share", p->delayed_share < 0 ? json_null() : N(p->delayed_share), "pace_share", known(p->pace_share), "clock_share", known(p->clock_share));
}

static json_t *step_times(const struct profile *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->steps && p->steps_us; i++)
        list = report_array(list, N(p->steps_us[i]));
    return list;
}

/* Steps with events may be the faster ones by chance; recording wins no time. */
static double recording_percent(const struct profile *p) { return p->step_us > 0 ? (p->recording_percent < 0 ? 0 : p->recording_percent) : NAN; }

static json_t *step(const struct profile *p)
{
    return json_pack("{s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "steps", p->steps, "times_us", step_times(p), "median_us", N(p->step_us), "p10_us",
                     N(p->step_p10_us), "p90_us", N(p->step_p90_us), "recording_overhead_percent", N(recording_percent(p)),
                     "samples_per_s", N(p->samples_per_s), "tokens_per_s", N(p->tokens_per_s), "tokens_per_step", N(report_tokens_per_step(p)), "padding_share", N(p->padding_share), "loss",
                     N(p->loss));
}

static json_t *efficiency(const struct profile *p)
{
    const double s = p->step_us / 1e6;
    return json_pack("{s:o,s:o,s:o,s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "mfu_percent", N(p->mfu_percent), "mfu_band", W(p->mfu_band),
                     "mfu_peak_gflops", N(p->mfu_peak.gflops), "mfu_peak_type", numbers_name(p->mfu_peak.numbers), "mfu_peak_of",
                     products_peak_word(p->mfu_peak), "model_flops", N(p->model_flops), "hardware_flops", N(p->hardware_flops), "hardware_bytes", json_whole(p->hardware_bytes),
                     "model_flops_per_s", N(report_ratio(p->model_flops, s)), "arithmetic_intensity_flops_per_byte",
                     N(report_ratio(p->hardware_flops, p->hardware_bytes)));
}

/* What the step is made of: parts of the step's time, each list of all of it. */
static json_t *where(const struct profile *p)
{
    json_t *products = json_pack("{s:o,s:o,s:i,s:i}", "us", N(p->products.us), "share", N(report_ratio(p->products.us, report_op_work_us(p))), "ops",
                                 p->products.ops, "projections", p->products.projections);
    return json_pack("{s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "products", products, "step", p->timeline_step, "us", N(p->step_us), "scale", N(p->scale), "op_self_us",
                     N(report_op_work_us(p)), "split", report_parts(p->split, p->n_split, report_split_us(p)), "parts",
                     report_parts(p->parts, p->n_parts, report_op_work_us(p)), "gaps", report_parts(p->gaps, p->n_gaps, p->step_us),
                     "waits_behind", p->waits_behind ? W(p->waits_behind) : json_null());
}

/* What a row of work reaches; the same fields for one op and for a kind. */
static json_t *with_rates(json_t *row, const struct profile *p, double self_us, double flops, double bytes,
                          double floor_us)
{
    json_t *rates =
        json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "self_us", N(self_us), "share",
                  N(report_ratio(self_us, p->step_us)), "flops", N(flops), "bytes", json_whole(bytes), "intensity",
                  N(report_ratio(flops, bytes)), "gflops_per_s", N(report_gflops(flops, self_us)), "gb_per_s",
                  N(report_gb_per_s(bytes, self_us)), "floor_us", N(floor_us), "efficiency",
                  N(report_ratio(floor_us, self_us)));
    return report_merge(row, rates);
}

json_t *report_op(const struct profile *p, int i)
{
    const struct profile_op *op = &p->ops[i];
    json_t *layer = op->layer == NO_LAYER ? json_null() : json_integer(op->layer);
    json_t *row = json_pack("{s:i,s:o,s:o,s:o,s:o,s:o,s:s,s:o,s:i,s:o,s:b,s:s,s:o,s:o,s:o}", "op", i, "occupancy",
                            op->occupancy > 0 ? N(op->occupancy) : json_null(), "name", W(op->name), "kind",
                            W(op->kind), "kernel", W(op->kernel), "made_by", W(op->made_by), "phase",
                            report_op_phase(op), "layer", layer, "runs", report_op_runs(p, op), "imbalance_us",
                            N(op->imbalance_us), "memory_bound", op->memory_bound, "level",
                            report_level_name(op->level), "part", W(op->part), "target", W(op->target), "backward_share",
                            N(op->gradient_share));
    return with_rates(row, p, op->self_us, op->flops, op->bytes, op->floor_us);
}

static json_t *ops(const struct profile *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_ops; i++)
        list = report_array(list, report_op(p, i));
    return list;
}

static json_t *kinds(const struct profile *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_kinds; i++) {
        const struct profile_kind *k = &p->kinds[i];
        json_t *row = json_pack("{s:o,s:i,s:o,s:o}", "kind", W(k->kind), "count", k->count, "imbalance_us",
                                N(k->imbalance_us), "target", W(report_kind_target(p, k->kind)));
        list = report_array(list, with_rates(row, p, k->self_us, k->flops, k->bytes, k->floor_us));
    }
    return list;
}

static json_t *memory_points(const struct profile *p)
{
    json_t *list = json_array();
    for (int i = 0; p->memory && i < p->n_ops; i++) {
        const struct profile_memory_point *m = &p->memory[i];
        list = report_array(list, json_pack("{s:o,s:o,s:o,s:o,s:o}", "parameters", json_whole(m->parameters), "state",
                                            json_whole(m->state), "gradients", json_whole(m->gradients), "activations",
                                            json_whole(m->activations), "inputs", json_whole(m->inputs)));
    }
    return list;
}

static json_t *memory(const struct profile *p)
{
    const bool known = p->memory && p->peak_op >= 0 && p->peak_op < p->n_ops;
    char *words = report_peak_words(p);
    json_t *m = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "peak_bytes", json_whole(p->peak_bytes), "planned_bytes",
                          json_whole(p->planned_bytes), "scratch_bytes", json_whole(p->scratch_bytes), "naive_bytes", json_whole(p->naive_bytes), "rss_peak_bytes",
                          json_whole(p->rss_peak_bytes), "available_bytes", json_whole(p->available_bytes), "peak_op",
                          known ? json_integer(p->peak_op) : json_null(), "peak_words", W(words), "points",
                          memory_points(p));
    free(words);
    return m;
}

static json_t *counters(const struct profile *p)
{
    if (!p->has_counters)
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o}", "instructions", N(p->instructions), "cycles", N(p->cycles), "cache_misses",
                     N(p->cache_misses), "instructions_per_cycle", N(report_ratio(p->instructions, p->cycles)));
}

json_t *report_document(const struct profile *p)
{
    const struct answers answers = report_profile_answers(p);
    const struct plan plan = report_profile_plan(p);
    json_t *head = report_merge(report_head("profile", PROFILE_SCHEMA, p->version, &answers), report_plan(&plan));
    return report_merge(
        head, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "run", report_run(p), "ranks", report_ranks(p), "model", model(p), "machine", machine(p), "step",
                        step(p), "efficiency", efficiency(p), "recorded", where(p), "kinds", kinds(p), "ops", ops(p), "memory", memory(p),
                        "counters", counters(p), "timeline", report_timeline(p), "config_yaml", W(p->config_yaml)));
}

enum status report_write_json(const struct profile *p, FILE *to, struct error *err)
{
    const enum status st = report_put_json(report_document(p), JSON_INDENT(1), to, err);
    fputc('\n', to);
    return st;
}
