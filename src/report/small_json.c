/* The three small files that other tools read: FLOPs and efficiency, intensity, the roofline. */
#include <math.h>

#include "core/json_whole.h"
#include "report/report_int.h"

#define N report_number
#define W report_words

static enum status put(json_t *document, FILE *to, struct error *err)
{
    const enum status st = report_put_json(document, JSON_INDENT(2), to, err);
    fputc('\n', to);
    return st;
}

/* ---- flops_profile.json ---- */

static json_t *efficiency_metrics(const struct profile *p)
{
    const double peak = p->mfu_peak.gflops * 1e9;
    char source[64];
    snprintf(source, sizeof source, "measured %s %s", numbers_name(p->mfu_peak.numbers),
             p->mfu_peak.registers ? "multiply-adds in registers" : "matrix product");
    return json_pack("{s:o,s:o,s:o,s:o,s:s}", "mfu_percent", N(p->mfu_percent), "mfu_band", W(p->mfu_band),
                     "hfu_percent", N(100 * report_ratio(p->hardware_flops, p->step_us / 1e6 * peak)),
                     "device_peak_flops", N(peak > 0 ? peak : NAN), "device_peak_source", source);
}

static json_t *performance_metrics(const struct profile *p)
{
    const double s = p->step_us / 1e6;
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "flops_per_sec", N(report_ratio(p->model_flops, s)),
                     "hardware_flops_per_sec", N(report_ratio(p->hardware_flops, s)), "throughput_samples_per_sec",
                     N(p->samples_per_s), "throughput_tokens_per_sec", N(p->tokens_per_s), "step_time_ms",
                     N(p->step_us / 1e3), "step_time_p10_ms", N(p->step_p10_us / 1e3), "step_time_p90_ms",
                     N(p->step_p90_us / 1e3), "loss", N(p->loss));
}

static json_t *flops_by_phase(const struct profile *p)
{
    json_t *by = json_object();
    for (enum phase phase = PHASE_DATA; phase < PHASES; phase++) {
        if (by && json_object_set_new(by, phase_name(phase), N(report_op_phase_flops(p, phase))) != 0) {
            json_decref(by);
            by = NULL;
        }
    }
    return by;
}

static json_t *flops_by_kind(const struct profile *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_kinds; i++)
        list = report_array(list, json_pack("{s:o,s:o,s:o}", "kind", W(p->kinds[i].kind), "flops", N(p->kinds[i].flops),
                                            "share", N(report_ratio(p->kinds[i].flops, p->hardware_flops))));
    return list;
}

/* FLOPs are those of one rank; so are its samples and tokens. */
static json_t *flops_analysis(const struct profile *p)
{
    const double ranks = p->n_ranks > 1 ? p->n_ranks : 1;
    const double samples = report_samples_per_step(p) / ranks, tokens = report_tokens_per_step(p) / ranks;
    return json_pack("{s:o,s:o,s:I,s:o,s:o,s:o,s:o,s:o}", "model_flops_per_step", N(p->model_flops),
                     "hardware_flops_per_step", N(p->hardware_flops), "total_parameters", (json_int_t)p->parameters,
                     "flops_per_parameter", N(report_ratio(p->model_flops, (double)p->parameters)), "flops_per_sample",
                     N(report_ratio(p->model_flops, samples)), "flops_per_token",
                     N(report_ratio(p->model_flops, tokens)), "hardware_flops_by_phase", flops_by_phase(p),
                     "hardware_flops_by_kind", flops_by_kind(p));
}

enum status report_write_flops(const struct profile *p, FILE *to, struct error *err)
{
    return put(json_pack("{s:i,s:o,s:o,s:o,s:o}", "schema_version", 1, "model", W(p->name), "efficiency_metrics",
                         efficiency_metrics(p), "performance_metrics", performance_metrics(p), "flops_analysis",
                         flops_analysis(p)),
               to, err);
}

/* ---- computational_intensity.json ---- */

static double floor_us(const struct profile *p, bool memory_bound)
{
    double us = 0;
    for (int i = 0; i < p->n_ops; i++)
        us += p->ops[i].memory_bound == memory_bound ? p->ops[i].floor_us : 0;
    return us;
}

/* Which ceiling most of the step's roofline time is under. The ridge of main memory does not say: caches serve much of a step. */
static json_t *bound(double memory_us, double compute_us)
{
    if (!(memory_us + compute_us > 0))
        return json_null();
    return json_string(memory_us > compute_us ? "memory_bound" : "compute_bound");
}

enum status report_write_intensity(const struct profile *p, FILE *to, struct error *err)
{
    const double bandwidth = report_memory_gb_per_s(p), used = report_gb_per_s(p->hardware_bytes, p->step_us);
    const double intensity = report_ratio(p->hardware_flops, p->hardware_bytes);
    const double ridge = report_ratio(p->mfu_peak.gflops, bandwidth), memory_us = floor_us(p, true), compute_us = floor_us(p, false);
    json_t *j = json_pack(
        "{s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:{s:o,s:o}}", "schema_version", 1, "model", W(p->name),
        "arithmetic_intensity_flops_per_byte", N(intensity), "ridge_flops_per_byte", N(ridge),
        "memory_bandwidth_used_gb_per_sec", N(used), "memory_bandwidth_peak_gb_per_sec", N(bandwidth),
        "memory_bandwidth_utilization_percent", N(100 * report_ratio(used, bandwidth)),
        "memory_bound_vs_compute_bound", bound(memory_us, compute_us), "flops_per_step", N(p->hardware_flops),
        "bytes_per_step", json_whole(p->hardware_bytes), "floor_us", "memory_bound_ops", N(memory_us),
        "compute_bound_ops", N(compute_us));
    return put(j, to, err);
}

/* ---- roofline_data.json ---- */

static json_t *points(const struct profile *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_ops; i++)
        list = report_array(list, report_op(p, i));
    return list;
}

enum status report_write_roofline(const struct profile *p, FILE *to, struct error *err)
{
    json_t *step = json_pack("{s:o,s:o,s:o,s:o,s:o}", "us", N(p->step_us), "flops", N(p->hardware_flops), "bytes",
                             json_whole(p->hardware_bytes), "intensity", N(report_ratio(p->hardware_flops, p->hardware_bytes)),
                             "gflops_per_s", N(report_gflops(p->hardware_flops, p->step_us)));
    return put(json_pack("{s:i,s:o,s:o,s:o,s:o}", "schema_version", 1, "model", W(p->name), "peaks",
                         report_peaks(p), "step", step, "points", points(p)),
               to, err);
}
