/* A diagnosis made by hand for the tests of an imported trace's reports: four steps of a model of twelve layers on one GPU
 * with two streams, whose numbers follow simple rules, so that a test can say what must come out. */
#ifndef HONE_TESTS_TRACE_DIAGNOSIS_H
#define HONE_TESTS_TRACE_DIAGNOSIS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis.h"
#include "core/arena.h"
#include "report_profile.h"             /* HOSTILE */

enum { TRACED_STEPS = 4, TRACED_FIRST = 5, TRACED_LAYERS = 12, TRACED_MEDIAN = 1, TRACED_POINTS = 200 };
enum { TRACED_MAIN, TRACED_AUTOGRAD, TRACED_COMPUTE, TRACED_COMM, TRACED_TRACKS };

#define TRACED_STEP_US 20000.0          /* step i takes i * 500 more */
#define TRACED_ORIGIN_NS 1700000000000000123LL

static inline double traced_start_us(int step) { return step * TRACED_STEP_US + 500.0 * step * (step - 1) / 2; }

static inline struct trace_step traced_step(double i)
{
    const double total = TRACED_STEP_US + 500 * i;
    return (struct trace_step){.number = TRACED_FIRST + (int)i, .start_us = traced_start_us((int)i), .total_us = total,
                               .kernel_us = 0.45 * total, .memcpy_us = 0.03 * total, .memset_us = 0.01 * total,
                               .comm_us = 0.06 * total, .runtime_us = 0.12 * total, .dataloader_us = 0.04 * total,
                               .cpu_us = 0.22 * total, .other_us = 0.07 * total, .busy_us = 0.55 * total,
                               .kernels = 2 * TRACED_LAYERS, .launches = 2 * TRACED_LAYERS + 2, .host_ops = 3 * TRACED_LAYERS};
}

static inline void traced_steps(struct diagnosis *d)
{
    d->steps = arena_alloc(&d->arena, TRACED_STEPS * sizeof *d->steps);
    d->n_steps = TRACED_STEPS;
    for (int i = 0; i < TRACED_STEPS; i++)
        d->steps[i] = traced_step(i);
    d->mean = traced_step((TRACED_STEPS - 1) / 2.0);
    d->timeline_step = TRACED_MEDIAN;
}

static inline void traced_event(struct trace *t, enum event_kind kind, int track, const char *name, int step, double start_us,
                                double us)
{
    trace_reserve(t, 1);
    t->events[t->n++] = (struct event){.start_ns = TRACED_ORIGIN_NS + (int64_t)(start_us * 1e3), .duration_ns = (int64_t)(us * 1e3),
                                       .name = trace_name(t, name), .step = step, .args = -1, .track = (int16_t)track,
                                       .kind = (int16_t)kind, .link = -1};
}

/* A layer: linear around addmm around a launch on the main thread, its kernel, then the backward the same way. */
static inline void traced_layer(struct trace *t, int step, int layer, double at)
{
    traced_event(t, EVENT_HOST_OP, TRACED_MAIN, "aten::linear", step, at, 500);
    traced_event(t, EVENT_HOST_OP, TRACED_MAIN, "aten::addmm", step, at + 40, 400);
    traced_event(t, EVENT_RUNTIME, TRACED_MAIN, "cudaLaunchKernel", step, at + 300, 100);
    traced_event(t, EVENT_KERNEL, TRACED_COMPUTE, "sm90_xmma_gemm_bf16bf16_bf16f32_tn", step, at + 420, 310);
    traced_event(t, EVENT_HOST_OP, TRACED_AUTOGRAD, "AddmmBackward0", step, at + 7000, 450);
    traced_event(t, EVENT_KERNEL, TRACED_COMPUTE, "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
                 step, at + 7300, 120);
    if (layer == TRACED_LAYERS - 1)
        traced_event(t, EVENT_KERNEL, TRACED_COMM, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", step, at + 7200, 1200);
}

static inline void traced_trace(struct diagnosis *d)
{
    static const struct trace_track tracks[] = {{TRACK_HOST_THREAD, 4242, 4242, -1}, {TRACK_HOST_THREAD, 4242, 4250, -1},
                                                {TRACK_DEVICE_STREAM, 0, 7, -1}, {TRACK_DEVICE_STREAM, 0, 20, -1}};
    struct trace *t = trace_new();
    t->tracks = memcpy(xcalloc(TRACED_TRACKS, sizeof *tracks), tracks, sizeof tracks);
    t->n_tracks = TRACED_TRACKS;
    t->tracks[TRACED_MAIN].label = trace_name(t, "thread 4242 (python)");
    t->origin = (struct trace_origin){.path = "runs/gpt/rank0.pt.trace.json.gz", .rank = 0, .world_size = 2,
                                      .backend = trace_name(t, "nccl"), .has_shapes = true, .has_memory = true,
                                      .json_bytes = 6400000, .file_bytes = 410000, .events_read = 21000, .other_events = 3100,
                                      .events_skipped = 2};
    for (int s = 0; s < TRACED_STEPS; s++) {
        const double start = traced_start_us(s), total = TRACED_STEP_US + 500 * s;
        traced_event(t, EVENT_STEP, TRACED_MAIN, "ProfilerStep", TRACED_FIRST + s, start, total - 400);
        traced_event(t, EVENT_MEMCPY, TRACED_COMPUTE, "Memcpy HtoD (Pinned -> Device)", s, start + 200, 150);
        traced_event(t, EVENT_ANNOTATION, TRACED_MAIN, "Optimizer.step#AdamW.step", s, start + 16000, 2500);
        for (int l = 0; l < TRACED_LAYERS; l++)
            traced_layer(t, s, l, start + 600 + 550 * l);
        traced_event(t, EVENT_KERNEL, TRACED_COMPUTE, "multi_tensor_apply_kernel", s, start + total - 900, 900);
    }
    d->trace = t;
}

static inline void traced_tables(struct diagnosis *d)
{
    static const struct trace_kernel kernels[] = {
        {"sm90_xmma_gemm_bf16bf16_bf16f32_tn", "aten::addmm", "gemm", 7, 48, 14880, 310, 300, 330, 0.62, 41.5, "sm90_xmma_gemm_bf16bf16_bf16f32_tn"},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "aten::add_", "elementwise", 7, 48,
         5760, 120, 118, 131, 0.24, 88, "vectorized_elementwise_kernel<CUDAFunctor_add>"},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", "c10d::allreduce_", "comm", 20, 4, 3360, 840, 700, 1200, 0.14, -1, NULL}};
    static const struct trace_op ops[] = {{"aten::addmm", 48, 48, 9000, 19200, 14880, 14880, 0.62},
                                          {"aten::add_", 48, 48, 2100, 2100, 5760, 5760, 0.24},
                                          {"c10d::allreduce_", 4, 4, 300, 420, 3360, 3360, 0.14},
                                          {"aten::linear", 48, 0, 4800, 24000, 0, 14880, 0}};
    static const struct trace_roof roofs[] = {
        {"aten::addmm", "[[512], [8192, 512], [512, 512]]", "[\"c10::BFloat16\"]", 12, 3720, 5.2e10, 2e8, 168, 645, 17, false},
        {"aten::add_", "[[8192, 512], [8192, 512]]", "", 12, 1440, 0, 6e8, 0, 416, -1, false}};
    static const struct trace_module modules[] = {{"GPT_0", 1, 9000, 2000, 4000, 0.9}, {"<b>Linear</b>_1", 12, 3000, 900, 1900, 0.4}};
    static const struct trace_frame frames[] = {{"train.py(12): step", 1, 2100, 9400}, {"<script>", 3, 12, 15}};
    d->roofs = arena_copy(&d->arena, roofs, sizeof roofs);
    d->n_roofs = sizeof roofs / sizeof *roofs;
    d->modules = arena_copy(&d->arena, modules, sizeof modules);
    d->n_modules = sizeof modules / sizeof *modules;
    d->frames = arena_copy(&d->arena, frames, sizeof frames);
    d->n_frames = sizeof frames / sizeof *frames;
    d->peaks = (struct trace_peaks){989, 4800, 1, "16 bits", false};
    static struct baseline_row longer[] = {{"op on the host", "aten::addmm", 100, 400}};
    static struct baseline baseline = {.path = "main/report.json", .before_us = 20000, .after_us = 21500, .change = 0.075, .host_factor = 1, .limit = 0.05,
                                       .slower = true, .rows = longer, .n_rows = 1, .new_rules = "host-sync"};
    d->baseline = &baseline;
    d->mfu_percent = 12.5;
    d->products_flops = 5.2e10;
    static const struct profile_part kinds[] = {{"gemm", 3720}, {"elementwise", 1440}, {"comm", 840}};
    d->kernels = arena_copy(&d->arena, kernels, sizeof kernels);
    d->n_kernels = sizeof kernels / sizeof *kernels;
    d->ops = arena_copy(&d->arena, ops, sizeof ops);
    d->n_ops = sizeof ops / sizeof *ops;
    d->kinds = arena_copy(&d->arena, kinds, sizeof kinds);
    d->n_kinds = sizeof kinds / sizeof *kinds;
}

static inline void traced_iteration(struct diagnosis *d)
{
    static const struct trace_phase phases[] = {{"data", 900, 1450, 150}, {"forward", 4900, 6900, 3450}, {"backward", 7300, 9300, 6100},
                                                {"optimizer", 1500, 2100, 1250}, {"evaluation", 0, 0, 0}, {"other", 150, 550, 0}, {"communication", 450, 450, 450}};
    d->iteration = arena_copy(&d->arena, phases, sizeof phases);
    d->n_iteration = sizeof phases / sizeof *phases;
}

static inline void traced_over_time(struct diagnosis *d)
{
    const double whole = traced_start_us(TRACED_STEPS);
    d->queue = arena_alloc(&d->arena, TRACED_POINTS * sizeof *d->queue);
    d->memory = arena_alloc(&d->arena, TRACED_POINTS * sizeof *d->memory);
    d->n_queue = d->n_memory = TRACED_POINTS;
    for (int i = 0; i < TRACED_POINTS; i++) {
        d->queue[i] = (struct trace_point){whole * i / TRACED_POINTS, i % 50 < 25 ? i % 50 : 50 - i % 50};
        d->memory[i] = (struct trace_point){whole * i / TRACED_POINTS, 2e9 + 4e7 * (i % 50 < 30 ? i % 50 : 3 * (50 - i % 50) / 2)};
    }
    d->memory_peak_bytes = 3.16e9;
    d->memory_total_bytes = 80e9;
    d->launches = (struct trace_launches){.count = 104, .per_step = 26, .call_us = 6.5, .delay_us = 20, .delay_p90_us = 410,
                                          .kernel_us = 120, .shorter_than_call = 12, .queue_mean = 11.5, .queue_max = 25,
                                          .syncs = 8, .sync_us = 5200, .graphs = 0};
}

static inline void traced_ranks(struct diagnosis *d)
{
    static const struct trace_rank ranks[] = {
        {0, "runs/gpt/rank0.pt.trace.json.gz", 4, 20750, 9300, 1240, 900, 9300, 8100, 640, "rank 0", false},
        {1, "runs/gpt/rank1.pt.trace.json.gz", 4, 20760, 9900, 600, 300, 9900, 8700, 0, "rank 1", false}};
    d->ranks = arena_copy(&d->arena, ranks, sizeof ranks);
    d->n_ranks = 2;
}

static inline void traced_collectives(struct diagnosis *d)
{
    static const struct trace_collective rows[] = {
        {"all_reduce", 52428800, 2, 1, 920, 600, 920, 600, 87.4, 640, 1, 0.75, "rank 1"},
        {"broadcast", -1, 0, 2.5, 100, 0, 40, 38, 0, -1, -1, 0, NULL}};
    d->collectives = arena_copy(&d->arena, rows, sizeof rows);
    d->n_collectives = 2;
}

static inline void traced_findings(struct diagnosis *d)
{
    static const struct finding f[] = {
        {"host-bound", SEVERITY_HIGH, EFFORT_MEDIUM, 0.41, 1.55, 1.3, 1.8, "the whole step",
         "The GPU waits for the host 41 % of the step: kernels are shorter than the host takes to launch them.",
         "model = torch.compile(model, mode='reduce-overhead')\n\nfor batch in loader:\n    loss = model(batch)",
         "26 launches per step of 6.5 µs; median kernel 120 µs.", false, NULL, NULL, 0.25, "medium", "step marks (prof.step())", 0, false, false, 0},
        {"host-sync", SEVERITY_LOW, EFFORT_LOW, 0.06, 1.03, 1.0, 1.08, "train.py(88): log",
         "The host reads the loss in every step.",
         "total += loss.detach()              # stays on the device\nif step % 100 == 0:\n    print(total.item())",
         "2 synchronizations per step, 1.3 ms.", false, "host-bound", NULL, 0.25, "high", NULL, 0, false, false, 0},
        {"exposed-comm", SEVERITY_MEDIUM, EFFORT_LOW, 0.043, 1.05, 1.02, 1.06, "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
         "900 µs of allreduce per step run while nothing else does.",
         "model = DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)",
         "1 collective per step, 73 % exposed.", false, NULL, NULL, 0.3, "high", NULL, 0, false, false, 0}};
    static const int first[] = {1, 2}, second[] = {0};
    static const struct plan_phase phases[] = {{"Quick wins", first, 2, 1.08, 1.03, 1.14, 0, false},
                                               {"Changes to the model", second, 1, 1.62, 1.34, 1.95, 0, false}};
    d->findings = arena_copy(&d->arena, f, sizeof f);
    d->n_findings = sizeof f / sizeof *f;
    d->phases = arena_copy(&d->arena, phases, sizeof phases);
    d->n_phases = 2;
}

static inline void traced_words(struct diagnosis *d)
{
    static char *const warnings[] = {"the trace was recorded without stacks, so that findings name ops and not lines"};
    d->name = "rank0.pt.trace.json.gz";
    d->device = "NVIDIA H200";
    d->headline = "The host bounds this step: the GPU is idle for 41 % of it.";
    d->bound_by = "host";
    d->largest = "Launching kernels one by one: 41 % of the step.";
    d->first_action = "Read the loss every 100 steps instead of in every step.";
    d->realistic_gain = "1.3 to 1.9 times faster with both phases.";
    d->warnings = arena_copy(&d->arena, warnings, sizeof warnings);
    d->n_warnings = 1;
}

/* A sample with everything in it. The caller releases it with traced_free. */
static inline struct diagnosis *traced_diagnosis(void)
{
    struct diagnosis *d = xcalloc(1, sizeof *d);
    traced_words(d);
    traced_steps(d);
    d->gpu = (struct trace_gpu){.busy_us = 45000, .idle_us = 35000, .total_us = 80000, .computation_us = 41000, .comm_us = 4960,
                                .exposed_comm_us = 3600, .memcpy_us = 600, .exposed_memcpy_us = 400, .idle_host_us = 29000,
                                .idle_kernel_us = 4000, .idle_other_us = 2000, .streams = 2};
    d->corrected = (struct corrected_view){.step_us = 15200, .low_us = 13800, .high_us = 16900, .recorded_us = 20750,
                                           .host_us = 14600, .device_us = 11400, .cost_per_event_us = 4.2,
                                           .events_per_step = 1320, .idle_us = 3800, .recorded_idle_us = 9350};
    d->mean_occupancy = 52.4;
    traced_iteration(d);
    traced_tables(d);
    traced_over_time(d);
    traced_ranks(d);
    traced_collectives(d);
    traced_findings(d);
    traced_trace(d);
    return d;
}

/* Hostile as it is, and so long that a table or a page must cut it. */
static inline char *traced_long_name(struct arena *a)
{
    enum { BYTES = 100000 };
    char *name = arena_alloc(a, BYTES + 1);
    for (size_t at = 0; at < BYTES; at += sizeof HOSTILE - 1)
        memcpy(name + at, HOSTILE, BYTES - at < sizeof HOSTILE - 1 ? BYTES - at : sizeof HOSTILE - 1);
    return name;
}

/* The sample with such names everywhere. */
static inline struct diagnosis *traced_hostile(void)
{
    struct diagnosis *d = traced_diagnosis();
    char *name = traced_long_name(&d->arena);
    d->name = d->device = HOSTILE;
    d->headline = d->largest = d->first_action = d->realistic_gain = d->bound_by = name;
    d->kernels[0].name = d->kernels[0].op = d->kernels[0].kind = name;
    d->kernels[1].name = d->kernels[1].op = d->kernels[1].kind = HOSTILE;
    d->ops[0].name = d->kinds[0].name = d->collectives[0].name = name;
    d->ops[1].name = d->kinds[1].name = HOSTILE;
    for (int i = 0; i < d->n_ranks; i++)
        d->ranks[i].path = d->ranks[i].name = name;
    for (int i = 0; i < d->n_findings; i++) {
        struct finding *f = &d->findings[i];
        f->rule = f->where = f->cause = f->evidence = f->after = i ? HOSTILE : name;
        f->fix = arena_printf(&d->arena, "```\n````python\n~~~\n%s", f->rule);
    }
    for (int i = 0; i < d->n_phases; i++)
        d->phases[i].title = name;
    d->warnings[0] = name;
    for (int i = 0; i < d->trace->n_names; i++)
        d->trace->names[i] = i % 2 ? name : HOSTILE;
    d->trace->origin.path = name;
    return d;
}

static inline void traced_free(struct diagnosis *d)
{
    trace_free(d->trace);
    arena_release(&d->arena);
    free(d);
}

/* Host events only. */
static inline struct diagnosis *traced_on_cpu(void)
{
    struct diagnosis *d = traced_diagnosis();
    d->device = NULL;
    d->gpu = (struct trace_gpu){0};
    d->launches = (struct trace_launches){0};
    d->n_kernels = d->n_kinds = d->n_queue = d->n_memory = d->n_ranks = d->n_collectives = d->n_phases = d->n_findings = 0;
    d->n_steps = 1;
    d->no_step_marks = true;
    d->timeline_step = 0;
    d->memory_peak_bytes = d->memory_total_bytes = 0;
    d->corrected.device_us = d->corrected.idle_us = 0;
    for (int i = 0; i < d->n_ops; i++)
        d->ops[i].device_us = d->ops[i].device_self_us = 0;
    return d;
}

#endif
