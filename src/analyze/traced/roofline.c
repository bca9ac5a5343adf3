/* Ops against what the device can do: arithmetic and bytes from recorded shapes over the time of what each op launched itself; on a CPU over its own time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/products.h"
#include "analyze/traced/study_int.h"

enum { MOST_INPUTS = 8, MOST_ROOFS = 200 };
static const double UNCOUNTED = 0.1;        /* of the device's time in what multiplies without known arithmetic, from which on MFU is a lower bound */

struct work { double flops, bytes; };

/* ---- bytes ---- */

/* The input-th type of "["float", "c10::BFloat16"]" in bytes; 0: no tensor's. */
static double type_bytes(const char *types, int input)
{
    static const struct { const char *name; double bytes; } sizes[] = {
        {"BFloat16", 2}, {"Half", 2}, {"Float8", 1}, {"float", 4}, {"double", 8}, {"long", 8}, {"int", 4}, {"bool", 1}, {"unsigned char", 1},
        {"signed char", 1}, {"short", 2}};
    const char *at = types;
    for (int i = 0; at && i < input; i++)
        at = (at = strchr(at, ',')) ? at + 1 : NULL;
    if (!at)
        return 0;
    const size_t n = strcspn(at, ",]");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *found = strstr(at, sizes[i].name);
        if (found && found < at + n)
            return sizes[i].bytes;
    }
    return 0;
}

/* Ops that read or write some rows or numbers of a table: its size says nothing of how many. */
static bool picks(const char *name)
{
    static const char *const words[] = {"gather", "scatter", "index", "embedding", "lookup", "take", "_cache"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* What is picked is read and written, as are its places read: a row for each of an embedding, a number of a gather. 0: not known. */
static double picked(const struct study *s, int32_t op)
{
    const char *name = view_name(s->v, op), *types = study_types(s, op);
    const bool rows = !strcmp(name, "aten::embedding"), numbers = !strcmp(name, "aten::gather");
    const struct dims table = study_dims(s, op, 0), places = study_dims(s, op, numbers ? 2 : 1);
    if ((!rows && !numbers) || table.n < 1 || places.n < 0)
        return 0;
    const double each = rows ? (double)table.size[table.n - 1] : 1;
    return (double)dims_elements(places) * (2 * each * type_bytes(types, 0) + type_bytes(types, numbers ? 2 : 1));
}

/* Every input is read once and a result like the largest written; what reduces writes next to nothing. */
static double moved(const struct study *s, int32_t op, enum task task)
{
    double read = 0, largest = 0;
    if (picks(view_name(s->v, op)))
        return picked(s, op);
    for (int i = 0; i < MOST_INPUTS; i++) {
        const double bytes = (double)dims_elements(study_dims(s, op, i)) * type_bytes(study_types(s, op), i);
        read += bytes;
        largest = fmax(largest, bytes);
    }
    if (task == TASK_FILL)
        return largest;
    if (strstr(view_name(s->v, op), "copy_"))
        return read;                        /* the first input is what is written */
    return task == TASK_REDUCE || task == TASK_LOSS ? read : read + largest;
}

/* ---- arithmetic ---- */

static const char *values_of(const struct study *s, int32_t op)
{
    const int32_t args = view_event(s->v, op)->args, values = args >= 0 ? s->v->trace->args[args].values : -1;
    return values >= 0 ? s->v->trace->names[values] : "";
}

static double elements(struct dims d) { return (double)dims_elements(d); }

/* Places of an image's dimension in the result of a convolution. */
static double places(int64_t in, int64_t kernel, int64_t padding, int64_t stride, int64_t dilation)
{
    if (stride < 1)
        return 0;
    const double span = (double)in + 2.0 * (double)padding - (double)dilation * ((double)kernel - 1) - 1;
    return span < 0 ? 0 : floor(span / (double)stride) + 1;
}

/* input, weight, [bias,] padding, stride, dilation */
static double convolution_flops(const struct study *s, int32_t op, int padding_at)
{
    const struct dims in = study_dims(s, op, 0), weight = study_dims(s, op, 1);
    const char *values = values_of(s, op);
    const struct dims padding = dims_read(values, padding_at), stride = dims_read(values, padding_at + 1), dilation = dims_read(values, padding_at + 2);
    if (in.n < 3 || weight.n != in.n || padding.n != in.n - 2 || stride.n != in.n - 2 || dilation.n != in.n - 2)
        return 0;
    double out = (double)in.size[0];
    for (int i = 2; i < in.n; i++)
        out *= places(in.size[i], weight.size[i], padding.size[i - 2], stride.size[i - 2], dilation.size[i - 2]);
    return 2 * out * elements(weight);
}

/* gradient of the result, input, weight: products for the input's and the weight's gradient */
static double convolution_backward_flops(const struct study *s, int32_t op)
{
    const struct dims out = study_dims(s, op, 0), weight = study_dims(s, op, 2);
    if (out.n < 3 || weight.n != out.n || out.size[1] < 1)
        return 0;
    return 4 * elements(out) / (double)out.size[1] * elements(weight);
}

/* Without regard to a mask: q and k, behind the gradient of the result in a backward op, in 2 or 5 products. Outer ops and cuDNN's
 * take (B, H, T, D), others that launch the kernel (B, T, H, D). */
static double attention_flops(const struct study *s, int32_t op)
{
    const char *name = view_name(s->v, op);
    const bool outer = strstr(name, "_scaled_dot_product_") || strstr(name, "_cudnn_attention_"), backward = strstr(name, "_backward");
    if (!outer && !strstr(name, "_flash_attention_") && !strstr(name, "_efficient_attention_"))
        return 0;
    const struct dims q = study_dims(s, op, backward), k = study_dims(s, op, 1 + backward);
    if (q.n != 4 || k.n != 4)
        return 0;
    return 2 * (backward ? 5 : 2) * elements(q) * (double)k.size[outer ? 2 : 1];
}

static struct work work_of(const struct study *s, int32_t op)
{
    const char *name = view_name(s->v, op);
    const enum task task = study_task(s, op);
    struct product p;
    struct work w = {0, moved(s, op, task)};
    if (product_read(s, op, &p)) {
        const double bytes = type_bytes(study_types(s, op), 1);
        w.flops = p.flops;
        w.bytes = bytes * (double)p.batch * ((double)p.m * (double)p.k + (double)p.k * (double)p.n + (double)p.m * (double)p.n);
    } else if (strstr(name, "cudnn_convolution") && !strstr(name, "backward"))
        w.flops = convolution_flops(s, op, 2);
    else if ((strstr(name, "miopen_convolution") || strstr(name, "mkldnn_convolution")) && !strstr(name, "backward"))
        w.flops = convolution_flops(s, op, 3);
    else if (strstr(name, "convolution_backward"))
        w.flops = convolution_backward_flops(s, op);
    else
        w.flops = attention_flops(s, op);
    return w;
}

static bool is_host_op(const struct study *s, int32_t i)
{
    const struct event *e = view_event(s->v, i);
    return e->kind == EVENT_HOST_OP && e->args >= 0 && s->v->trace->args[e->args].dims >= 0;
}

/* Nothing is read or written: a view is made, or room for a result. */
static bool is_hollow(const struct study *s, int32_t op)
{
    const char *name = view_name(s->v, op);
    return study_task(s, op) == TASK_SHAPE || strstr(name, "::empty") || strstr(name, "::resize_") || strstr(name, "::new_empty");
}

/* On a CPU an op has time of its own also where those inside do its work. Inside of a product a bias may be copied. */
static struct work own_work(const struct study *s, int32_t op)
{
    const struct work w = is_hollow(s, op) ? (struct work){0} : work_of(s, op);
    for (int32_t i = op + 1; i < s->v->end[op] && (w.flops > 0 || w.bytes > 0); i++) {
        const struct work inner = is_host_op(s, i) && !is_hollow(s, i) ? work_of(s, i) : (struct work){0};
        if (inner.flops > 0 || (inner.bytes > 0 && !(w.flops > 0)))
            return (struct work){0};
    }
    return w;
}

/* ---- rows ---- */

static const double MOST_PERCENT = 102;      /* of a peak; clocks and counts are not that exact */

/* Time of what the op launched itself; the longest of these kernels in *kernel: a product may have a short one behind it, which adds its parts up. */
static double launched_ns(const struct study *s, int32_t op, int32_t *kernel)
{
    const struct view *v = s->v;
    double ns = 0, longest = -1;
    for (int32_t i = op + 1; i < v->end[op]; i = view_event(v, i)->kind == EVENT_HOST_OP ? v->end[i] : i + 1)
        for (int32_t d = v->launched[i]; d >= 0; d = v->next_launched[d - v->device]) {
            const double took = (double)view_event(v, d)->duration_ns;
            ns += took;
            *kernel = took > longest ? d : *kernel;
            longest = fmax(longest, took);
        }
    return ns;
}

struct row {
    int32_t name, dims, types, op;
    double count, ns;
    struct work work;
    int peak;                               /* PEAK_16, ...; -1: no product, or unknown */
    bool unknown;                           /* it multiplies, but how much is not known */
};

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    if (x->dims != y->dims)
        return x->dims < y->dims ? -1 : 1;
    return (x->types > y->types) - (x->types < y->types);
}

static int by_ns(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (y->ns > x->ns) - (y->ns < x->ns);
}

static int peak_of(const struct study *s, int32_t op, int32_t kernel)
{
    const enum precision p = kernel >= 0 ? product_precision(s, kernel) : op_precision(s, op);
    return p == PRECISION_16 ? PEAK_16 : p == PRECISION_TF32 ? PEAK_TF32 : p == PRECISION_F32 ? PEAK_F32 : -1;
}

/* Computed again inside of backward: arithmetic that the model does not need. */
static bool is_again(const struct study *s, int32_t op) { return view_event(s->v, op)->link >= 0 && study_in_backward(s, op); }

/* Products, convolutions and attentions, whether their arithmetic is known or not: by the kernel, on a CPU (kernel -1) by the op. */
static bool multiplies(const struct study *s, int32_t op, int32_t kernel)
{
    if (kernel < 0) {
        const enum task task = study_task(s, op);
        return task == TASK_LINEAR || task == TASK_BATCHED || task == TASK_CONVOLUTION || task == TASK_ATTENTION;
    }
    const enum kernel_kind kind = view_kernel_kind(s->v, kernel);
    return kind == KERNEL_GEMM || kind == KERNEL_CONV || kind == KERNEL_ATTENTION;
}

struct counted {
    double flops[3];                        /* by peak */
    double ns;                              /* of the device, in ops whose arithmetic is known */
};

/* own: on a CPU, the time of each op without what is inside and without the profiler; else NULL. */
static int collect(const struct study *s, const double *own, struct row *rows, struct counted *c)
{
    int n = 0;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        const struct event *e = view_event(s->v, i);
        int32_t kernel = -1;
        if (!is_host_op(s, i) || !study_has(s, i))
            continue;
        const double ns = own ? own[i] : launched_ns(s, i, &kernel);
        const struct work w = !(ns > 0) ? (struct work){0} : own ? own_work(s, i) : work_of(s, i);
        if (!(w.flops > 0) && !(w.bytes > 0))
            continue;
        const struct event_args *a = &s->v->trace->args[e->args];
        rows[n] = (struct row){e->name, a->dims, a->types, i, 1, ns, w, w.flops > 0 ? peak_of(s, i, kernel) : -1, !(w.flops > 0) && multiplies(s, i, kernel)};
        if (rows[n].peak >= 0 && !is_again(s, i))
            c->flops[rows[n].peak] += w.flops;
        c->ns += rows[n].peak >= 0 ? ns : 0;
        n++;
    }
    return n;
}

static int merge(struct row *rows, int n)
{
    int kept = 0;
    qsort(rows, (size_t)n, sizeof *rows, by_key);
    for (int i = 0; i < n; i++) {
        struct row *last = kept ? &rows[kept - 1] : NULL;
        if (!last || by_key(last, &rows[i])) {
            rows[kept++] = rows[i];
            continue;
        }
        last->count += rows[i].count;
        last->ns += rows[i].ns;
        last->work.flops += rows[i].work.flops;
        last->work.bytes += rows[i].work.bytes;
    }
    qsort(rows, (size_t)kept, sizeof *rows, by_ns);
    return kept;
}

static const char *arg_text(const struct study *s, int32_t name) { return name >= 0 ? s->v->trace->names[name] : ""; }

static struct trace_roof roof_of(const struct study *s, const struct row *r, const struct device_peak *peak, const struct diagnose_options *o)
{
    struct trace_roof f = {.op = s->v->trace->names[r->name], .shapes = arg_text(s, r->dims), .types = arg_text(s, r->types),
                           .count = per_step(s, r->count), .device_us = per_step(s, r->ns) / 1e3, .flops = per_step(s, r->work.flops),
                           .bytes = per_step(s, r->work.bytes), .tflops = r->work.flops / r->ns / 1e3, .gbps = r->work.bytes / r->ns, .percent = -1};
    const double tflops = o && o->peak_tflops > 0 ? o->peak_tflops : r->peak >= 0 ? peak->tflops[r->peak] : 0;
    const double by_units = tflops > 0 && f.flops > 0 ? 100 * f.tflops / tflops : -1, by_memory = peak->gbps > 0 && f.bytes > 0 ? 100 * f.gbps / peak->gbps : -1;
    f.percent = fmax(by_units, by_memory);
    f.by_memory = by_memory > by_units;
    if (r->unknown || f.percent > MOST_PERCENT)     /* which of the peaks is nearer is not known; or what it reads was in a cache, or it has not done what its shapes say */
        f.percent = -1;
    return f;
}

/* Of the judged steps, the device's time, and that of all that multiplies. */
static void sum_device(const struct study *s, double *all_ns, double *products_ns)
{
    const struct view *v = s->v;
    *all_ns = *products_ns = 0;
    for (int32_t d = v->device; d < v->device + v->n_device; d++) {
        const int32_t launch = v->launch[d - v->device];
        if (launch < 0 || !replay_covers(s->replay, view_event(v, launch)->start_ns))
            continue;
        *all_ns += (double)view_event(v, d)->duration_ns;
        *products_ns += multiplies(s, launch, d) ? (double)view_event(v, d)->duration_ns : 0;
    }
}

/* The same of a CPU's ops. */
static void sum_ops(const struct study *s, const double *own, double *all_ns, double *products_ns)
{
    *all_ns = *products_ns = 0;
    for (int32_t i = 0; i < s->v->n_host; i++) {
        if (study_annotation(s, i, "enumerate(DataLoader)") >= 0)
            continue;                           /* that the step waits for, no work of its ops */
        *all_ns += own[i];
        *products_ns += study_has(s, i) && multiplies(s, i, -1) ? own[i] : 0;
    }
}

/* Where much of what multiplies has no known arithmetic, MFU is a lower bound; where that is most of it, it says nothing. */
static void fill_mfu(struct study *s, const double *own, const struct counted *c)
{
    struct diagnosis *d = s->d;
    double all, products;
    if (own)
        sum_ops(s, own, &all, &products);
    else
        sum_device(s, &all, &products);
    const double uncounted = fmax(products - c->ns, 0);
    d->mfu_percent = -1;
    d->mfu_at_least = uncounted > UNCOUNTED * all;
    d->uncounted_share = all > 0 ? uncounted / all : 0;
    if (d->mfu_at_least && uncounted > c->ns)
        return;
    if (d->products_flops > 0 && d->peaks.tflops > 0 && d->corrected.step_us > 0)
        d->mfu_percent = 100 * d->products_flops / (d->corrected.step_us * 1e-6) / (d->peaks.tflops * d->peaks.devices * 1e12);
}

static int devices_with_work(const struct study *s)
{
    int n = 0;
    for (int i = 0; i < s->v->trace->n_tracks; i++)
        n += s->replay->work_ns[i] > 0;
    return n > 1 ? n : 1;
}

static struct device_peak cpu_peak(const struct diagnose_options *o)
{
    struct device_peak peak = {.gbps = o ? o->cpu.gbps : 0};
    peak.tflops[PEAK_F32] = o ? o->cpu.f32_tflops : 0;
    peak.tflops[PEAK_16] = o ? o->cpu.bf16_tflops : 0;
    return peak;
}

/* Where a GPU is listed and nothing of it was recorded, ops may have done no more than start its work: their time says nothing of the CPU's, unless
 * it is known that it was one. */
static bool is_of_cpu(const struct study *s, const struct diagnose_options *o)
{
    return study_on_cpu(s) && (!strcmp(s->d->device, "CPU") || (o && o->on_cpu));
}

void study_roofline(struct study *s, const struct diagnose_options *o)
{
    static const char *const numbers[] = {"f32", "TF32", "16 bits"};
    struct diagnosis *d = s->d;
    double *own = is_of_cpu(s, o) ? study_work_ns(s) : NULL;
    struct device_peak peak = own ? cpu_peak(o) : device_peak(d->device);
    struct counted c = {0};
    const double *flops = c.flops;
    if (o && o->peak_gbps > 0)
        peak.gbps = o->peak_gbps;
    struct row *rows = xcalloc((size_t)(own ? s->v->n_host : s->replay->n_ops) + 1, sizeof *rows);
    const int n = merge(rows, collect(s, own, rows, &c));
    d->n_roofs = n < MOST_ROOFS ? n : MOST_ROOFS;
    d->roofs = arena_alloc(&d->arena, (size_t)(d->n_roofs + 1) * sizeof *d->roofs);
    for (int i = 0; i < d->n_roofs; i++)
        d->roofs[i] = roof_of(s, &rows[i], &peak, o);
    free(rows);
    const int most = flops[PEAK_16] >= flops[PEAK_TF32] && flops[PEAK_16] >= flops[PEAK_F32] ? PEAK_16
                     : flops[PEAK_TF32] >= flops[PEAK_F32]                                   ? PEAK_TF32
                                                                                             : PEAK_F32;
    d->products_flops = per_step(s, flops[0] + flops[1] + flops[2]);
    d->peaks = (struct trace_peaks){o && o->peak_tflops > 0 ? o->peak_tflops : d->products_flops > 0 ? peak.tflops[most] : 0, peak.gbps, devices_with_work(s),
                                    d->products_flops > 0 ? numbers[most] : NULL, o && (o->peak_tflops > 0 || o->peak_gbps > 0)};
    fill_mfu(s, own, &c);
    free(own);
}
