/* A profile made by hand for the report's tests: a llama of four layers on two threads whose numbers follow simple rules, so
 * that a test can say what must come out. Every op of a kind takes the same time; thread 1 takes a tenth longer. */
#ifndef HONE_TESTS_REPORT_PROFILE_H
#define HONE_TESTS_REPORT_PROFILE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "core/arena.h"

enum { SAMPLE_LAYERS = 4, SAMPLE_THREADS = 2, SAMPLE_STEP = 7 };

#define SAMPLE_GFLOPS 80.0              /* GEMM peak */
#define SAMPLE_GB_PER_S 20.0            /* main memory */
#define SAMPLE_DISPATCH_US 40.0
#define SAMPLE_LOADER_US 25.0

struct sample_op {                      /* what one op does, and how far from its floor it is */
    const char *name, *kind;
    double mflop, kbytes, slower;
};

static const struct sample_op sample_block[] = {
    {"norm1", "rmsnorm", 2, 2100, 1.4},           {"attn.q", "matmul", 134, 2400, 1.25},
    {"attn.k", "matmul", 67, 1700, 1.4},          {"attn.v", "matmul", 67, 1700, 1.4},
    {"attn.rope_q", "rope", 1.5, 2100, 1.9},      {"attn.rope_k", "rope", 0.7, 1050, 1.9},
    {"attn.scores", "attn_scores", 67, 5800, 2.2}, {"attn.mask", "add", 1, 8400, 1.3},
    {"attn.softmax", "softmax", 5, 8400, 2.6},    {"attn.mix", "attn_mix", 67, 5800, 2.1},
    {"attn.out", "matmul", 134, 2400, 1.25},      {"add1", "add", 0.3, 3100, 1.2},
    {"norm2", "rmsnorm", 2, 2100, 1.4},           {"ffn.gate", "matmul", 268, 3700, 1.2},
    {"ffn.up", "matmul", 268, 3700, 1.2},         {"ffn.silu", "silu", 4, 4200, 1.8},
    {"ffn.mul", "mul", 0.5, 6300, 1.2},           {"ffn.down", "matmul", 268, 3700, 1.2},
    {"add2", "add", 0.3, 3100, 1.2},
};
enum { SAMPLE_BLOCK = sizeof sample_block / sizeof *sample_block };

static inline struct profile_op *sample_add(struct profile *p, const char *name, const char *kind, enum phase phase,
                                            int layer, double mflop, double kbytes, double slower)
{
    struct profile_op *op = &p->ops[p->n_ops++];
    const double compute_us = mflop * 1e3 / SAMPLE_GFLOPS, memory_us = kbytes / SAMPLE_GB_PER_S;
    *op = (struct profile_op){.name = name, .kind = kind, .kernel = strstr(kind, "matmul") ? "blis" : "tuned",
                              .made_by = phase == PHASE_FORWARD ? "model" : phase == PHASE_BACKWARD ? "autodiff" : "optimizer",
                              .phase = phase, .layer = layer, .flops = mflop * 1e6, .bytes = kbytes * 1e3,
                              .floor_us = fmax(compute_us, memory_us), .memory_bound = memory_us > compute_us};
    op->self_us = op->floor_us * slower;
    op->imbalance_us = op->self_us / 20;        /* threads take 0.95 and 1.05 of the mean */
    return op;
}

static inline void sample_block_op(struct profile *p, int layer, int i, bool backward)
{
    const struct sample_op *o = &sample_block[i];
    const double more = backward ? 2 : 1;
    const char *name = arena_printf(&p->arena, "blocks.%d.%s%s", layer, o->name, backward ? ".grad" : "");
    const char *kind = backward && strcmp(o->kind, "matmul") != 0 ? arena_printf(&p->arena, "%s_grad", o->kind) : o->kind;
    sample_add(p, name, kind, backward ? PHASE_BACKWARD : PHASE_FORWARD, layer, o->mflop * more, o->kbytes * more, o->slower);
}

static inline void sample_ops(struct profile *p)
{
    p->ops = arena_alloc(&p->arena, 400 * sizeof *p->ops);
    sample_add(p, "mask", "causal_mask", PHASE_FORWARD, NO_LAYER, 0, 66, 1.1);
    sample_add(p, "embed", "embed", PHASE_FORWARD, NO_LAYER, 0, 2100, 1.6);
    for (int l = 0; l < SAMPLE_LAYERS; l++)
        for (int i = 0; i < SAMPLE_BLOCK; i++)
            sample_block_op(p, l, i, false);
    sample_add(p, "lm_head", "matmul", PHASE_FORWARD, NO_LAYER, 524, 6200, 1.15);
    sample_add(p, "loss", "nll", PHASE_FORWARD, NO_LAYER, 0.001, 4100, 1.5);
    sample_add(p, "loss.read", "host_read", PHASE_FORWARD, NO_LAYER, 0, 0.004, 1.0);
    sample_add(p, "lm_head.grad", "matmul", PHASE_BACKWARD, NO_LAYER, 1048, 12400, 1.15);
    for (int l = SAMPLE_LAYERS - 1; l >= 0; l--)
        for (int i = SAMPLE_BLOCK - 1; i >= 0; i--)
            sample_block_op(p, l, i, true);
    sample_add(p, "embed.grad", "embed_grad", PHASE_BACKWARD, NO_LAYER, 0.3, 3100, 3.0);
    for (int i = 0; i < 38; i++)
        sample_add(p, arena_printf(&p->arena, "adamw.%d", i), "adamw", PHASE_OPTIMIZE, NO_LAYER, 0.9, 1800, 1.35);
}

static inline int sample_kind_order(const void *a, const void *b)
{
    const double x = ((const struct profile_kind *)a)->self_us, y = ((const struct profile_kind *)b)->self_us;
    return x > y ? -1 : x < y;
}

static inline void sample_kinds(struct profile *p)
{
    p->kinds = arena_alloc(&p->arena, ((size_t)p->n_ops + 1) * sizeof *p->kinds);
    for (int i = 0; i < p->n_ops; i++) {
        const struct profile_op *op = &p->ops[i];
        int k = 0;
        while (k < p->n_kinds && strcmp(p->kinds[k].kind, op->kind) != 0)
            k++;
        p->n_kinds += k == p->n_kinds;
        struct profile_kind *kind = &p->kinds[k];
        *kind = (struct profile_kind){op->kind, kind->count + 1, kind->self_us + op->self_us,
                                      kind->imbalance_us + op->imbalance_us, kind->flops + op->flops,
                                      kind->bytes + op->bytes, kind->floor_us + op->floor_us};
    }
    qsort(p->kinds, (size_t)p->n_kinds, sizeof *p->kinds, sample_kind_order);
}

/* Activations grow through the forward part and are freed by the backward one, which makes gradients. */
static inline void sample_memory(struct profile *p)
{
    p->memory = arena_alloc(&p->arena, ((size_t)p->n_ops + 1) * sizeof *p->memory);
    double activations = 0, gradients = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const double part = p->ops[i].bytes / 2;
        if (p->ops[i].phase == PHASE_FORWARD)
            activations += part;
        else if (p->ops[i].phase == PHASE_BACKWARD)
            activations -= part / 2, gradients += part / 9;
        p->memory[i] = (struct profile_memory_point){13.2e6, 26.4e6, gradients, fmax(activations, 0), 16e3};
        const double total = 13.2e6 + 26.4e6 + gradients + fmax(activations, 0) + 16e3;
        if (total > p->peak_bytes) {
            p->peak_bytes = total;
            p->peak_op = i;
        }
    }
    p->planned_bytes = p->peak_bytes * 1.04;
    p->naive_bytes = p->peak_bytes * 2.6;
    p->rss_peak_bytes = p->peak_bytes * 1.5;
    p->available_bytes = 8e9;
}

static inline void sample_event(struct trace *t, enum event_kind kind, int track, int name, int op, double start_us, double us)
{
    t->events[t->n++] = (struct event){.start_ns = 5000000 + (int64_t)(start_us * 1e3), .duration_ns = (int64_t)(us * 1e3),
                                       .name = name, .step = kind == EVENT_LOADER ? -1 : SAMPLE_STEP, .op = op,
                                       .track = (int16_t)track, .kind = (int16_t)kind};
}

static inline int sample_name(struct trace *t, const char *text)
{
    t->names[t->n_names] = text;
    return t->n_names++;
}

/* The ops one after the other, each on both threads; a phase on the host around its ops; the loader beside them. */
static inline void sample_trace(struct profile *p)
{
    struct trace *t = arena_alloc(&p->arena, sizeof *t);
    t->events = arena_alloc(&p->arena, ((size_t)p->n_ops * SAMPLE_THREADS + 32) * sizeof *t->events);
    t->names = arena_alloc(&p->arena, ((size_t)p->n_ops + 32) * sizeof *t->names);
    const int step = sample_name(t, "step"), wait = sample_name(t, "wait for the loader"), batch = sample_name(t, "batch");
    double at = 0, phase_start = SAMPLE_LOADER_US;
    sample_event(t, EVENT_WAIT, TRACK_HOST, wait, -1, 0, SAMPLE_LOADER_US);
    at = SAMPLE_LOADER_US;
    for (int i = 0; i < p->n_ops; i++) {
        const struct profile_op *op = &p->ops[i];
        at += SAMPLE_DISPATCH_US / p->n_ops;
        const int name = sample_name(t, op->name);
        sample_event(t, EVENT_OP, TRACK_THREADS, name, i, at, op->self_us - op->imbalance_us);
        sample_event(t, EVENT_OP, TRACK_THREADS + 1, name, i, at, op->self_us + op->imbalance_us);
        at += op->self_us + op->imbalance_us;
        if (i + 1 == p->n_ops || p->ops[i + 1].phase != op->phase) {
            sample_event(t, EVENT_PHASE, TRACK_HOST, sample_name(t, phase_name(op->phase)), -1, phase_start, at - phase_start);
            phase_start = at;
        }
    }
    sample_event(t, EVENT_STEP, TRACK_HOST, step, -1, 0, p->step_us);
    sample_event(t, EVENT_LOADER, TRACK_LOADER, batch, -1, -900, 2500);
    sample_event(t, EVENT_LOADER, TRACK_LOADER, batch, -1, 9000, 2600);
    t->events[t->n++] = (struct event){.start_ns = 5000000, .kind = EVENT_COUNTER, .name = step, .step = SAMPLE_STEP, .op = -1};
    p->trace = t;
    p->timeline_step = SAMPLE_STEP;
}

static inline void sample_times(struct profile *p)
{
    double phase[PHASES] = {0}, imbalance = 0, self = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const struct profile_op *op = &p->ops[i];
        phase[op->phase] += op->self_us + op->imbalance_us;
        imbalance += op->imbalance_us;
        self += op->self_us;
        p->hardware_flops += op->flops;
        p->hardware_bytes += op->bytes;
    }
    const struct profile_part split[] = {{"data", SAMPLE_LOADER_US}, {"forward", phase[PHASE_FORWARD]},
                                         {"backward", phase[PHASE_BACKWARD]}, {"optimizer", phase[PHASE_OPTIMIZE]},
                                         {"evaluation", 0}, {"other", p->n_ops ? SAMPLE_DISPATCH_US : 0}};
    const struct profile_part gaps[] = {{"loader wait", SAMPLE_LOADER_US}, {"imbalance", imbalance},
                                        {"dispatch", p->n_ops ? SAMPLE_DISPATCH_US : 0}};
    memcpy(p->split, split, sizeof split);
    memcpy(p->gaps, gaps, sizeof gaps);
    p->n_split = sizeof split / sizeof *split;
    p->n_gaps = sizeof gaps / sizeof *gaps;
    p->step_us = self + imbalance + SAMPLE_LOADER_US + (p->n_ops ? SAMPLE_DISPATCH_US : 0);
    p->recording_percent = 1.5;
    p->scale = 1 / 1.015;
    p->step_p10_us = p->step_us * 0.97;
    p->step_p90_us = p->step_us * 1.06;
    p->samples_per_s = (double)p->batch / p->step_us * 1e6;
    p->tokens_per_s = p->samples_per_s * (double)p->seq;
    p->model_flops = p->hardware_flops * 0.9;
    p->mfu_peak = (struct products_peak){.gflops = SAMPLE_GFLOPS};
    p->mfu_percent = 100 * p->model_flops / (p->step_us * SAMPLE_GFLOPS * 1e3);
    p->mfu_band = "40-60 %";
}

/* By the name: the sample has no program. */
static inline void sample_parts(struct profile *p)
{
    static const char *const words[][2] = {{"attn", "attention"}, {"ffn", "feed-forward"}, {"embed", "embedding"}, {"lm_head", "head and loss"},
                                           {"loss", "head and loss"}, {"norm", "norms"}, {"add", "norms"}, {"adamw", "optimizer"}};
    for (int i = 0; i < p->n_ops; i++) {
        struct profile_op *op = &p->ops[i];
        op->part = "other";
        for (int k = 7; k >= 0; k--)
            op->part = strstr(op->name, words[k][0]) ? words[k][1] : op->part;
        op->target = strstr(op->name, "softmax") || strstr(op->name, "scores") ? "no-flash-attention"
                     : strstr(op->name, "adamw") ? "unfused-optimizer" : NULL;
        op->level = CACHE_LEVELS - 1;
        op->gradient_share = op->phase == PHASE_BACKWARD;
    }
    for (; model_parts[p->n_parts]; p->n_parts++) {
        p->parts[p->n_parts].name = model_parts[p->n_parts];
        for (int i = 0; i < p->n_ops; i++)
            p->parts[p->n_parts].us += strcmp(p->ops[i].part, model_parts[p->n_parts]) ? 0 : p->ops[i].self_us;
    }
}

static inline void sample_findings(struct profile *p)
{
    static const struct finding f[] = {
        {"no-flash-attention", SEVERITY_HIGH, EFFORT_MEDIUM, 0.31, 1.27, 1.18, 1.36, "blocks.*.attn",
         "The scores (8, 8, 256, 256) are written to memory and read back three times per layer.",
         "--set optimize.flash-attention=on: the scores then never leave the cache.",
         "softmax, mask and scores move 590 MB per step and take 31 % of it.", false, NULL, "flash-attention", 0, NULL, NULL, 0, false, false, 0},
        {"unfused-optimizer", SEVERITY_MEDIUM, EFFORT_LOW, 0.09, 1.06, 1.03, 1.08, "optimizer",
         "38 AdamW ops run one after the other, each too short for two threads.",
         "--set optimize.fused-optimizer=on: one op updates every parameter.", "38 ops of 122 µs.", false, NULL, "fused-optimizer", 0, NULL, NULL, 0, false, false, 0},
        {"unfused-projections", SEVERITY_LOW, EFFORT_LOW, 0.12, 1.03, 1.01, 1.06, "blocks.*.attn.{q,k,v}",
         "Q, K and V read the same input in three matrix products.", "--set optimize.fuse-qkv=on --set optimize.fuse-gate-up=on",
         "Three products of 67 to 134 MFLOP at 71 to 80 % of the peak.", false, NULL, "fuse-qkv", 0, NULL, NULL, 0, false, false, 0},
        {"constant-rebuilt", SEVERITY_LOW, EFFORT_LOW, 0.0001, 1.0, 1.0, 1.001, "mask", "The causal mask is made in every step.",
         "Build it once.", "mask takes 4 µs.", false, NULL, "hoist-constants", 0, NULL, NULL, 0, false, false, 0},
        {"small-batch", SEVERITY_LOW, EFFORT_HIGH, 0.05, 1.04, 0.98, 1.1, "train.batch_size", "Products of 8 × 256 rows.",
         "Try train.batch_size=16; the loss curve changes.", "matmul reaches 82 % of the peak.", false, NULL, NULL, 0, NULL, NULL, 0, true, false, 0},
    };
    static const int quick[] = {1, 2}, larger[] = {0}, trades[] = {4};
    static const struct plan_phase phases[] = {
        {"Quick wins", quick, 2, 1.09, 1.04, 1.14, 46e3, false}, {"Larger changes", larger, 1, 1.38, 1.22, 1.55, 36e3, false}, {"Trades", trades, 1, 1.42, 1.22, 1.6, 35e3, false}};
    p->findings = arena_copy(&p->arena, f, sizeof f);
    p->n_findings = sizeof f / sizeof *f;
    p->phases = arena_copy(&p->arena, phases, sizeof phases);
    p->n_phases = sizeof phases / sizeof *phases;
}

static inline void sample_words(struct profile *p)
{
    p->name = "tinyllama-small";
    p->arch = "llama";
    p->device = "cpu";
    p->isa = "neon";
    p->blas = "blis";
    p->version = "0.1.0";
    p->config_yaml = "model:\n  arch: llama\n  dim: 256\n  layers: 4\n  heads: 8\ntrain:\n  batch_size: 8\n";
    p->headline = "Memory traffic of attention bounds this step: scores, mask and softmax take a third of it at 40 % of the roofline.";
    p->bound_by = "memory";
    p->largest = "Attention without flash: 31 % of the step.";
    p->first_action = "Turn on flash attention (optimize.flash-attention=on).";
    p->realistic_gain = "1.3 to 1.5 times faster with the first three fixes together.";
}

/* A sample with everything in it. The caller releases it with sample_free. */
static inline struct profile *sample_profile(void)
{
    struct profile *p = xcalloc(1, sizeof *p);
    p->threads = p->peaks.threads = SAMPLE_THREADS;
    p->steps = 20;
    p->batch = 8;
    p->seq = 256;
    p->accumulate = 1;
    p->layers = SAMPLE_LAYERS;
    p->parameters = 3300000;
    p->loss = 3.21;
    p->peaks = (struct peaks){.threads = SAMPLE_THREADS, .gflops[NUMBERS_F32] = SAMPLE_GFLOPS,
                              .copy_gb_per_s = {210, 120, 0, SAMPLE_GB_PER_S}, .cache_bytes = {65536, 1048576, 0, 16e9},
                              .machine = "Neoverse-N1, 2 cores, neon, blis"};
    p->has_counters = true;
    p->instructions = 2.4e8;
    p->cycles = 1.6e8;
    p->cache_misses = 4.1e6;
    sample_words(p);
    sample_ops(p);
    sample_kinds(p);
    sample_times(p);
    sample_memory(p);
    sample_trace(p);
    sample_parts(p);
    sample_findings(p);
    return p;
}

/* The sample with products of bf16, of which the machine multiplies twice as many, and with rows that samples share. */
static inline struct profile *bf16_profile(void)
{
    struct profile *p = sample_profile();
    p->peaks.gflops[NUMBERS_BF16] = 2 * SAMPLE_GFLOPS;
    p->mfu_peak = (struct products_peak){.gflops = 2 * SAMPLE_GFLOPS, .numbers = NUMBERS_BF16};
    p->mfu_percent /= 2;
    p->tokens_per_s /= 2;                   /* samples share rows */
    p->padding_share = 0.125;
    return p;
}

/* The sample as a GPU would have it: one lane, peaks and looks of its own, nothing of a CPU. */
static inline struct profile *gpu_profile(void)
{
    struct profile *p = bf16_profile();
    p->gpu = true;
    ((struct trace *)p->trace)->on_device = true;
    p->device = "cuda";
    p->device_name = "NVIDIA H200";
    p->timed_by = "CUPTI's records of kernels";
    p->kernels_per_step = 321;
    p->has_counters = false;
    p->n_findings = p->n_phases = 0;
    p->peaks.gpu.launched_us = 3.25;
    p->peaks.gpu.replayed_us = 0.5;
    snprintf(p->peaks.machine, sizeof p->peaks.machine, "NVIDIA H200, sm_90, CUDA 13.0");
    for (int i = 0; i < p->n_gaps; i++)
        if (!strcmp(p->gaps[i].name, "thread imbalance") || !strcmp(p->gaps[i].name, "dispatch"))
            p->gaps[i].name = "idle between kernels";
    gpu_watch_begin(&p->watch, NULL);
    gpu_watch_add(&p->watch, &(struct gpu_state){.sm_mhz = 1980, .watts = 612, .celsius = 61, .busy_percent = 87, .used_bytes = 3e9,
                                                 .total_bytes = 150e9});
    return p;
}

/* Names that try to be markup, control sequences, broken UTF-8, mentions. */
static const char HOSTILE[] = "</script><script>alert(1)</script><!-- & \" ' \\ \x1b[31m\n\x01 \xff\xc3( \xed\xa0\x80 \xf0\x9f\x94\xa5 \xe2\x80\xa8"
                              " @all #1 [x](http://y) |`*_~$";

/* The sample with such names everywhere. */
static inline struct profile *hostile_profile(void)
{
    struct profile *p = sample_profile();
    p->name = p->arch = p->device = p->isa = p->blas = p->version = HOSTILE;
    p->headline = p->bound_by = p->largest = p->first_action = p->realistic_gain = p->mfu_band = HOSTILE;
    p->config_yaml = HOSTILE;
    snprintf(p->peaks.machine, sizeof p->peaks.machine, "%s", HOSTILE);
    for (int i = 0; i < p->n_ops; i++)
        p->ops[i].name = p->ops[i].kernel = p->ops[i].made_by = p->ops[i].part = p->ops[i].target = HOSTILE;
    for (int i = 0; i < p->n_kinds; i++)
        p->kinds[i].kind = HOSTILE;
    for (int i = 0; i < p->n_split; i++)
        p->split[i].name = HOSTILE;
    for (int i = 0; i < p->n_gaps; i++)
        p->gaps[i].name = HOSTILE;
    for (int i = 0; i < p->n_findings; i++) {
        struct finding *f = &p->findings[i];
        f->rule = f->where = f->cause = f->fix = f->evidence = f->pass = HOSTILE;
    }
    for (int i = 0; i < p->n_parts; i++)
        p->parts[i].name = HOSTILE;
    p->warning = HOSTILE;
    p->trace->names[0] = HOSTILE;
    return p;
}

static inline void sample_free(struct profile *p)
{
    arena_release(&p->arena);
    free(p);
}

#endif
