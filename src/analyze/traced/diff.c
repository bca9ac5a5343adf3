/* Two diagnoses side by side: the step without the profiler, its parts as recorded, ops by their time on the device and on the host,
 * kernels by name, or by op where the devices differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diagnosis.h"

/* ---- rows by name ---- */

struct rows {
    struct diff_row *at;
    int n, cap;
    struct arena *arena;                    /* for names that are made */
};

static struct diff_row *add_row(struct rows *r, const char *name)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->at = xrealloc(r->at, (size_t)r->cap * sizeof *r->at);
    }
    r->at[r->n] = (struct diff_row){.name = name};
    return &r->at[r->n++];
}

static int by_name(const void *a, const void *b)
{
    const struct diff_row *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int by_difference(const void *a, const void *b)
{
    const struct diff_row *x = a, *y = b;
    const double dx = fabs(x->b_us - x->a_us), dy = fabs(y->b_us - y->a_us);
    if (dx != dy)
        return dx < dy ? 1 : -1;
    return x->a_us != y->a_us ? (x->a_us < y->a_us ? 1 : -1) : by_name(a, b);
}

/* Rows of one name become one. */
static void join_rows(struct rows *r)
{
    int n = 0;
    if (r->n)
        qsort(r->at, (size_t)r->n, sizeof *r->at, by_name);
    for (int i = 0; i < r->n; i++) {
        if (!n || strcmp(r->at[n - 1].name, r->at[i].name)) {
            r->at[n++] = r->at[i];
            continue;
        }
        r->at[n - 1].a_us += r->at[i].a_us;
        r->at[n - 1].b_us += r->at[i].b_us;
        r->at[n - 1].a_count += r->at[i].a_count;
        r->at[n - 1].b_count += r->at[i].b_count;
    }
    r->n = n;
}

/* Names belong to the traces, which need not outlive the difference. */
static struct diff_row *keep_rows(struct trace_diff *d, struct rows *r, int *n)
{
    struct diff_row *kept = arena_alloc(&d->arena, ((size_t)r->n + 1) * sizeof *kept);
    for (int i = 0; i < r->n; i++) {
        kept[i] = r->at[i];
        kept[i].name = arena_copy(&d->arena, r->at[i].name, strlen(r->at[i].name) + 1);
    }
    *n = r->n;
    free(r->at);
    return kept;
}

/* ---- ops, kernels, parts ---- */

static void add_side(struct rows *r, const char *name, double us, double count, bool is_b)
{
    struct diff_row *row = add_row(r, name);
    *(is_b ? &row->b_us : &row->a_us) = us;
    *(is_b ? &row->b_count : &row->a_count) = count;
}

static void add_host_ops(struct rows *r, const struct diagnosis *d, bool is_b)
{
    const double steps = d->n_steps > 0 ? d->n_steps : 1;
    for (int i = 0; i < d->n_ops; i++)
        add_side(r, d->ops[i].name, d->ops[i].self_us / steps, (double)d->ops[i].count / steps, is_b);
}

/* What they launched themselves. */
static void add_device_ops(struct rows *r, const struct diagnosis *d, bool is_b)
{
    const double steps = d->n_steps > 0 ? d->n_steps : 1;
    for (int i = 0; i < d->n_ops; i++)
        if (d->ops[i].launches)
            add_side(r, d->ops[i].name, d->ops[i].device_self_us / steps, (double)d->ops[i].count / steps, is_b);
}

static bool has_device(const struct diagnosis *d)
{
    for (int i = 0; i < d->n_ops; i++)
        if (d->ops[i].device_self_us > 0)
            return true;
    return false;
}

/* Kernels of one op and kind, whatever their names on this device. */
static void add_kernels_of_ops(struct rows *r, const struct diagnosis *d, bool is_b)
{
    const double steps = d->n_steps > 0 ? d->n_steps : 1;
    for (int i = 0; i < d->n_kernels; i++) {
        const struct trace_kernel *k = &d->kernels[i];
        if (*k->op)
            add_side(r, arena_printf(r->arena, "%s, %s", k->op, k->kind), k->total_us / steps, (double)k->count / steps, is_b);
    }
}

static bool same_device(const struct diagnosis *a, const struct diagnosis *b)
{
    return !a->device || !b->device || !strcmp(a->device, b->device);
}

/* Those of recorded steps only: the list of the diagnosis has what earlier steps left behind, too. */
static void add_kernels(struct rows *r, const struct diagnosis *d, bool is_b)
{
    const struct trace *t = d->trace;
    const double steps = d->n_steps > 0 ? d->n_steps : 1;
    const size_t n = t ? (size_t)t->n_names + 1 : 1;
    int64_t *count = xcalloc(n, sizeof *count);
    double *ns = xcalloc(n, sizeof *ns);
    for (int64_t i = 0; t && i < t->n; i++)
        if (t->events[i].kind == EVENT_KERNEL && t->events[i].step >= 0) {
            count[t->events[i].name]++;
            ns[t->events[i].name] += (double)t->events[i].duration_ns;
        }
    for (int32_t i = 0; t && i < t->n_names; i++)
        if (count[i])
            add_side(r, t->names[i], ns[i] / 1e3 / steps, (double)count[i] / steps, is_b);
    free(count);
    free(ns);
}

typedef void add_fn(struct rows *r, const struct diagnosis *d, bool is_b);

static struct diff_row *compare(struct trace_diff *out, const struct diagnosis *a, const struct diagnosis *b, add_fn *add, int *n)
{
    struct rows r = {.arena = &out->arena};
    add(&r, a, false);
    add(&r, b, true);
    join_rows(&r);
    if (r.n)
        qsort(r.at, (size_t)r.n, sizeof *r.at, by_difference);
    return keep_rows(out, &r, n);
}

static struct diff_row *compare_split(struct trace_diff *out, const struct trace_step *a, const struct trace_step *b, int *n)
{
    const struct diff_row rows[] = {
        {"kernel", a->kernel_us, b->kernel_us, 0, 0},         {"memcpy", a->memcpy_us, b->memcpy_us, 0, 0},
        {"memset", a->memset_us, b->memset_us, 0, 0},         {"communication", a->comm_us, b->comm_us, 0, 0},
        {"runtime", a->runtime_us, b->runtime_us, 0, 0},      {"data loader", a->dataloader_us, b->dataloader_us, 0, 0},
        {"cpu op", a->cpu_us, b->cpu_us, 0, 0},               {"other", a->other_us, b->other_us, 0, 0},
    };
    *n = sizeof rows / sizeof *rows;
    return arena_copy(&out->arena, rows, sizeof rows);
}

/* ---- names of one step ---- */

static bool on_host(int kind) { return kind == EVENT_HOST_OP || kind == EVENT_ANNOTATION || kind == EVENT_RUNTIME; }

/* Names of the last recorded step on the host: ops, annotations, calls, and the mark of the step. */
static void add_names(struct rows *r, const struct diagnosis *d, bool is_b)
{
    const struct trace *t = d->trace;
    int32_t *counts = xcalloc(t ? (size_t)t->n_names + 1 : 1, sizeof *counts);
    for (int64_t i = 0; t && i < t->n; i++)
        counts[t->events[i].name] += on_host(t->events[i].kind) && t->events[i].step == d->n_steps - 1;
    for (int32_t i = 0; t && i < t->n_names; i++)
        if (counts[i])
            add_side(r, t->names[i], 0, counts[i], is_b);
    if (!d->no_step_marks)
        add_side(r, "", 0, 1, is_b);
    free(counts);
}

static void count_names(struct trace_diff *out, const struct diagnosis *a, const struct diagnosis *b)
{
    struct rows r = {0};
    add_names(&r, a, false);
    add_names(&r, b, true);
    join_rows(&r);
    for (int i = 0; i < r.n; i++) {
        out->ops_equal += r.at[i].a_count == r.at[i].b_count;
        out->ops_added += r.at[i].a_count == 0;
        out->ops_removed += r.at[i].b_count == 0;
    }
    free(r.at);
}

/* A diagnosis of numbers alone has no other step than the recorded one. */
static double recorded_us(const struct diagnosis *d) { return d->corrected.recorded_us > 0 ? d->corrected.recorded_us : d->mean.total_us; }
static double step_us(const struct diagnosis *d) { return d->corrected.step_us > 0 ? d->corrected.step_us : recorded_us(d); }

/* What was given and what is estimated do not compare: an error of the estimate would look like a change. */
static bool one_is_given(const struct diagnosis *a, const struct diagnosis *b) { return a->corrected.given != b->corrected.given; }

/* ---- the host's speed ---- */

static const double LEAST_COMMON = 0.3;     /* of the host's time is in ops that both do equally often */
static const double EQUAL_SPEED = 0.05;     /* what two recordings differ by anyway */
static const double MOST_FACTOR = 1.4;      /* beyond it is another machine, or what the change itself does to the host */

/* On one machine an op that both steps call equally often takes equally long, but for what else the machine did. */
static double host_factor(const struct trace_diff *d)
{
    const struct diff_row *rows = d->host_ops;
    double a = 0, b = 0, all_a = 0, all_b = 0;
    for (int i = 0; i < d->n_host_ops; i++) {
        all_a += rows[i].a_us;
        all_b += rows[i].b_us;
        if (rows[i].a_count > 0 && rows[i].a_count == rows[i].b_count) {
            a += rows[i].a_us;
            b += rows[i].b_us;
        }
    }
    if (!(a > LEAST_COMMON * all_a) || !(b > LEAST_COMMON * all_b) || fabs(b / a - 1) < EQUAL_SPEED)
        return 1;
    return b / a < MOST_FACTOR && a / b < MOST_FACTOR ? b / a : 1;
}

/* On the same device, with the same things recorded, which cost differently. Times that were given are true as they are. */
static bool recorded_alike(const struct diagnosis *a, const struct diagnosis *b)
{
    if (a->corrected.given || b->corrected.given)
        return false;
    const struct trace_origin *x = a->trace ? &a->trace->origin : NULL, *y = b->trace ? &b->trace->origin : NULL;
    return same_device(a, b) && x && y && x->has_stacks == y->has_stacks && x->has_shapes == y->has_shapes && x->has_memory == y->has_memory;
}

/* The step if the host were so much faster; only a step that the host bounds changes. */
static double at_equal_speed(const struct diagnosis *d, double factor)
{
    const struct corrected_view *c = &d->corrected;
    if (!(c->step_us > 0) || c->host_us < 0.8 * c->step_us)
        return step_us(d);
    return fmax(c->device_us, c->step_us - c->host_us * (1 - 1 / factor));
}

/* ---- numbers ---- */

static double kernels_per_step(const struct diagnosis *d)
{
    const struct trace *t = d->trace;
    int64_t n = 0;
    for (int64_t i = 0; t && i < t->n; i++)
        n += t->events[i].kind == EVENT_KERNEL && t->events[i].step >= 0;
    return n ? (double)n / d->n_steps : NAN;
}

static double known(double value) { return value > 0 ? value : NAN; }

/* Where much of the arithmetic is not known, what is known of it does not compare. */
static double product_flops(const struct diagnosis *d, double shown_us)
{
    return d->mfu_at_least ? NAN : known(d->products_flops / shown_us * 1e6);
}

/* Of the step that is compared. Shares of two peaks do not compare. */
static double mfu(const struct diagnosis *d, const struct diagnosis *other, double shown_us)
{
    return d->peaks.tflops == other->peaks.tflops && !d->mfu_at_least ? known(d->mfu_percent / 100 * step_us(d) / shown_us) : NAN;
}

static void compare_numbers(struct trace_diff *d, const struct diagnosis *a, const struct diagnosis *b)
{
    const struct diff_number numbers[DIFF_NUMBERS] = {
        {"FLOP/s of products", DIFF_COUNT, product_flops(a, d->a_step_us), product_flops(b, d->b_step_us)},
        {"MFU", DIFF_SHARE, mfu(a, b, d->a_step_us), mfu(b, a, d->b_step_us)},
        {"GPU busy, as recorded", DIFF_SHARE, known(a->gpu.busy_us / a->gpu.total_us), known(b->gpu.busy_us / b->gpu.total_us)},
        {"kernels", DIFF_COUNT, kernels_per_step(a), kernels_per_step(b)},
        {"calls that start work", DIFF_COUNT, known(a->launches.per_step), known(b->launches.per_step)},
        {"memory at its peak", DIFF_BYTES, known(a->memory_peak_bytes), known(b->memory_peak_bytes)},
    };
    memcpy(d->numbers, numbers, sizeof numbers);
}

enum status diagnosis_diff(struct trace_diff *out, const struct diagnosis *a, const struct diagnosis *b, struct error *err)
{
    if (!a->n_steps || !b->n_steps)
        return error_set(err, BAD_INPUT, "'%s' has no steps to compare", a->n_steps ? b->name : a->name);
    struct trace_diff d = {.a_step_us = step_us(a), .b_step_us = step_us(b), .a_recorded_us = recorded_us(a), .b_recorded_us = recorded_us(b),
                           .as_recorded = one_is_given(a, b), .kernels_by_op = !same_device(a, b)};
    if (d.as_recorded) {
        d.a_step_us = d.a_recorded_us;
        d.b_step_us = d.b_recorded_us;
    }
    const bool device = has_device(a) || has_device(b);
    d.a = arena_printf(&d.arena, "%s", a->name ? a->name : "");
    d.b = arena_printf(&d.arena, "%s", b->name ? b->name : "");
    d.split = compare_split(&d, &a->mean, &b->mean, &d.n_split);
    d.ops = compare(&d, a, b, device ? add_device_ops : add_host_ops, &d.n_ops);
    if (device)
        d.host_ops = compare(&d, a, b, add_host_ops, &d.n_host_ops);
    d.kernels = compare(&d, a, b, d.kernels_by_op ? add_kernels_of_ops : add_kernels, &d.n_kernels);
    count_names(&d, a, b);
    d.host_factor = recorded_alike(a, b) ? host_factor(&d) : 1;
    d.b_step_us = d.host_factor != 1 ? at_equal_speed(b, d.host_factor) : d.b_step_us;
    compare_numbers(&d, a, b);
    *out = d;
    return OK;
}

void trace_diff_release(struct trace_diff *d)
{
    arena_release(&d->arena);
    *d = (struct trace_diff){0};
}
