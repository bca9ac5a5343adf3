/* The executor: binds values to memory and ops to kernels, then runs them. */
#include "exec/exec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/setup.h"
#include "exec/exec_int.h"
#include "passes/passes.h"

enum { ALIGN = 64 };

struct exec {
    struct program *program;
    struct backend *backend;
    void **memory;                  /* per value */
    struct bound_op *ops;           /* in order of phases */
    struct prepared *prepared;      /* the same, ready to run */
    struct bound_op *early_ops;     /* those of data, forward and backward without what runs in the last micro-batch alone */
    struct prepared *early;         /* NULL: there is nothing like that */
    int n_early, *early_place;      /* their places in `ops` */
    int phase_start[PHASES + 1];    /* ops of phase i: [phase_start[i], phase_start[i + 1]) */
    void *persistent, *workspace, *scratch;
    bool borrows_workspace, borrows_scratch;        /* of the executor that values are shared with */
    size_t persistent_bytes;
    struct exec_memory sizes;
    int *place_of;                  /* per op of the program: its place in `ops` */
    struct lane_time *times;        /* (ops, lanes); NULL: not measured */
    bool stale;                     /* a parameter was written since the setup ran, and what the setup made of it is old */
    struct exec *from;              /* that values are shared with; NULL: none */
    bool gathers, gathering;        /* weights come from other ranks; and they may still be on their way */
    bool touched;                   /* a step was run or something written, here or in the executor that values are shared with */
    struct error failed;            /* the first failure of the device; nothing is run or copied after it */
};

static size_t aligned(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static void *shared_memory(struct exec *shared, const struct value *v)
{
    const value_id id = shared && v->kind != VALUE_INPUT ? program_find(shared->program, v->name) : NO_VALUE;
    if (id == NO_VALUE || shared->program->values[id].kind != v->kind ||
        shared->program->values[id].dtype != v->dtype || !shape_equal(shared->program->values[id].shape, v->shape))
        return NULL;
    return shared->memory[id];
}

/* Values that persist get memory one after the other, in two sweeps: sizes, then addresses. */
static enum status bind_persistent(struct exec *e, struct exec *shared, struct error *err)
{
    const struct program *p = e->program;
    size_t total = 0;
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->values[i];
        if (!value_is_persistent(v))
            continue;
        e->memory[i] = shared_memory(shared, v);
        if (e->memory[i])
            continue;
        exec_count_value(&e->sizes, v);
        total += aligned(value_bytes(v));
    }
    e->persistent_bytes = total;
    e->persistent = e->backend->alloc(e->backend, total);
    if (!e->persistent)
        return error_no_memory(err, "parameters and optimizer state", total);
    if (e->backend->spread)
        e->backend->spread(e->backend, e->persistent, total);
    char *at = e->persistent;
    for (int i = 0; i < p->n_values; i++)
        if (value_is_persistent(&p->values[i]) && !e->memory[i]) {
            e->memory[i] = at;
            at += aligned(value_bytes(&p->values[i]));
        }
    return OK;
}

static enum status bind_workspace(struct exec *e, struct exec *shared, struct error *err)
{
    const struct program *p = e->program;
    struct memory_plan plan;
    pass_memory_plan(p, &plan);
    exec_count_workspace(&e->sizes, p, &plan);
    e->borrows_workspace = shared && shared->sizes.workspace >= plan.workspace_bytes;
    e->workspace = e->borrows_workspace ? shared->workspace : e->backend->alloc(e->backend, plan.workspace_bytes);
    for (int i = 0; i < p->n_values && e->workspace; i++)
        if (plan.offset[i] != SIZE_MAX)
            e->memory[i] = (char *)e->workspace + plan.offset[i];
    memory_plan_release(&plan);
    return e->workspace ? OK : error_no_memory(err, "the workspace of activations and gradients", e->sizes.workspace);
}

static void **addresses(struct exec *e, const value_id *ids, int n)
{
    void **list = arena_alloc(&e->program->arena, (size_t)n * sizeof *list);
    for (int i = 0; i < n; i++)
        list[i] = e->memory[ids[i]];
    return list;
}

static enum status bind_op(struct exec *e, struct op *op, struct bound_op *bound, struct error *err)
{
    e->gathers |= op->kind == OP_GATHER_START;
    *bound = (struct bound_op){e->program, op, addresses(e, op->in, op->n_in), addresses(e, op->out, op->n_out), NULL};
    if (op->leave)
        bound->leave = (const float *)e->memory[op->leave->held] + op->leave->group;
    return exec_count_op(&e->sizes, e->program, op, e->backend, err);
}

static enum status bind_ops(struct exec *e, struct error *err)
{
    struct program *p = e->program;
    int n = 0;
    for (enum phase ph = 0; ph < PHASES; ph++) {
        e->phase_start[ph] = n;
        for (int i = 0; i < p->n_ops; i++)
            if (p->ops[i].phase == ph) {
                e->place_of[i] = n;
                const enum status st = bind_op(e, &p->ops[i], &e->ops[n++], err);
                if (st != OK)
                    return st;
            }
    }
    e->phase_start[PHASES] = n;
    exec_count_kept(&e->sizes, p, e->backend);
    return OK;
}

static enum status prepare(struct exec *e, struct exec *shared, struct error *err)
{
    e->borrows_scratch = shared && shared->sizes.scratch >= e->sizes.scratch;
    e->scratch = e->borrows_scratch ? shared->scratch : e->backend->alloc(e->backend, e->sizes.scratch);
    if (!e->scratch)
        return error_no_memory(err, "kernel scratch", e->sizes.scratch);
    const enum status st =
        e->backend->prepare(e->backend, &e->prepared, e->ops, e->phase_start[PHASES], e->scratch, e->sizes.scratch, err);
    return st == OK ? setup_check("kernels", err) : st;
}

/* What runs in the last micro-batch alone is not in the list of the others. */
static enum status prepare_early(struct exec *e, struct error *err)
{
    const int from = e->phase_start[PHASE_DATA], to = e->phase_start[PHASE_BACKWARD + 1];
    e->early_ops = xcalloc((size_t)(to - from) + 1, sizeof *e->early_ops);
    e->early_place = xcalloc((size_t)(to - from) + 1, sizeof *e->early_place);
    for (int i = from; i < to; i++)
        if (!e->ops[i].op->last) {
            e->early_place[e->n_early] = i;
            e->early_ops[e->n_early++] = e->ops[i];
        }
    if (e->n_early == to - from || e->program->micro_batches <= 1)
        return OK;
    return e->backend->prepare(e->backend, &e->early, e->early_ops, e->n_early, e->scratch, e->sizes.scratch, err);
}

enum status exec_new(struct exec **out, struct program *p, struct backend *b, struct exec *shared, struct error *err)
{
    struct exec *e = xcalloc(1, sizeof *e);
    e->program = p;
    e->backend = b;
    e->touched = shared != NULL;
    e->from = shared;
    e->memory = xcalloc((size_t)p->n_values, sizeof *e->memory);
    e->ops = xcalloc((size_t)p->n_ops, sizeof *e->ops);
    e->place_of = xcalloc((size_t)p->n_ops, sizeof *e->place_of);
    enum status st = program_validate(p, err);
    if (st == OK)
        st = bind_persistent(e, shared, err);
    if (st == OK)
        st = setup_check("memory plan", err);
    if (st == OK)
        st = bind_workspace(e, shared, err);
    if (st == OK)
        st = setup_check("kernels", err);
    if (st == OK)
        st = bind_ops(e, err);
    if (st == OK)
        st = prepare(e, shared, err);
    if (st == OK)
        st = prepare_early(e, err);
    setup_done();
    if (st == OK) {
        exec_run(e, PHASE_SETUP, PHASE_SETUP);
        st = exec_status(e, err);
    }
    if (st == OK) {
        *out = e;
        return OK;
    }
    e->program = NULL;              /* stays with the caller */
    exec_free(e);
    return st;
}

void exec_free(struct exec *e)
{
    if (!e)
        return;
    if (e->gathers)
        exec_settle(e);             /* what is under way may be of this program */
    e->backend->release(e->backend, e->prepared);
    e->backend->release(e->backend, e->early);
    e->backend->free_memory(e->backend, e->persistent, e->persistent_bytes);
    if (!e->borrows_workspace)
        e->backend->free_memory(e->backend, e->workspace, e->sizes.workspace);
    if (!e->borrows_scratch)
        e->backend->free_memory(e->backend, e->scratch, e->sizes.scratch);
    program_free(e->program);
    free(e->memory);
    free(e->ops);
    free(e->early_ops);
    free(e->early_place);
    free(e->place_of);
    free(e->times);
    free(e);
}

const struct program *exec_program(const struct exec *e) { return e->program; }
const struct backend *exec_backend(const struct exec *e) { return e->backend; }
bool exec_is_touched(const struct exec *e) { return e->touched; }
struct exec_memory exec_memory(const struct exec *e) { return e->sizes; }
int exec_lanes(const struct exec *e) { return e->backend->lanes; }
const char *exec_kernel_name(const struct exec *e, int op) { return e->backend->about(e->prepared, e->place_of[op]).kernel; }

double exec_occupancy(const struct exec *e, int op) { return e->backend->about(e->prepared, e->place_of[op]).occupancy; }

double exec_kernels_per_step(struct exec *e)
{
    const int *at = e->phase_start;
    if (!e->backend->kernels || e->failed.status != OK)
        return -1;
    const int batch = e->backend->kernels(e->backend, e->prepared, at[PHASE_DATA], at[PHASE_BACKWARD + 1]);
    const int rest = e->backend->kernels(e->backend, e->prepared, at[PHASE_BACKWARD + 1], at[PHASE_OPTIMIZE + 1]);
    const int batches = e->program->micro_batches > 1 ? e->program->micro_batches : 1;
    return batch < 0 || rest < 0 ? -1 : (double)batch * batches + rest;
}

double exec_choice_gain_us(const struct exec *e)
{
    double us = 0;
    for (int i = 0; i < e->phase_start[PHASES]; i++)
        us += e->backend->about(e->prepared, i).saves_us * op_runs_per_step(e->program, e->ops[i].op);
    return us;
}

void exec_measure(struct exec *e, bool on)
{
    free(e->times);
    e->times = on ? xcalloc((size_t)e->program->n_ops * (size_t)e->backend->lanes, sizeof *e->times) : NULL;
}

bool exec_ran(const struct exec *e, int64_t *from_ns, int64_t *to_ns)
{
    *from_ns = e->backend->ran_from_ns;
    *to_ns = e->backend->ran_to_ns;
    return e->times && *to_ns > *from_ns;
}

const struct device_event *exec_device_events(const struct exec *e, int *n)
{
    *n = e->times ? e->backend->n_events : 0;
    return e->backend->events;
}

bool exec_on_device(const struct exec *e) { return e->backend->device != NULL; }

const struct lane_time *exec_times(const struct exec *e, int op)
{
    return e->times ? e->times + e->place_of[op] * e->backend->lanes : NULL;
}

/* An op takes the mean of its lanes: they may be in two ops at once, and the longest of each would be more than the step together. */
static void count_times(struct exec *e, int from, int to)
{
    const int lanes = e->backend->lanes;
    for (int i = from; i < to; i++) {
        const struct lane_time *t = e->times + i * lanes;
        int64_t sum = 0;
        for (int k = 0; k < lanes; k++)
            sum += t[k].end_ns - t[k].start_ns + t[k].sums_end_ns - t[k].sums_start_ns + t[k].help_ns;
        e->ops[i].op->profile.calls++;
        e->ops[i].op->profile.total_ns += sum / lanes;
    }
}

static bool works(const struct exec *e) { return e->failed.status == OK; }

enum status exec_status(const struct exec *e, struct error *err)
{
    if (!works(e) && err)
        *err = e->failed;
    return e->failed.status;
}

static struct exec *owner_of(struct exec *e) { return e && e->from ? e->from : e; }

/* A step ends while other ranks still send what they updated. The next forward waits for that, also one of a program for batches of another shape, since
 * the parameters are the same memory; who else wants weights does it here. */
void exec_settle(struct exec *e)
{
    struct exec *owner = owner_of(e);
    if (!owner || !owner->gathering)
        return;
    owner->gathering = false;
    for (int i = 0; i < owner->phase_start[PHASES] && works(owner); i++)
        if (owner->ops[i].op->kind == OP_GATHER_WAIT)
            owner->backend->run(owner->backend, owner->prepared, i, i + 1, NULL, &owner->failed);
}

void exec_refresh(struct exec *e)
{
    if (!e->stale)
        return;
    e->stale = false;
    exec_run(e, PHASE_SETUP, PHASE_SETUP);
}

void exec_run(struct exec *e, enum phase first, enum phase last)
{
    if (e->from && !e->gathers)
        exec_settle(e);
    const int from = e->phase_start[first], to = e->phase_start[last + 1];
    if (first > PHASE_SETUP)
        exec_refresh(e);
    if (to == from || !works(e))
        return;
    e->touched |= last > PHASE_SETUP;
    if (last == PHASE_OPTIMIZE)
        owner_of(e)->gathering = e->gathers;
    const enum status st = e->backend->run(e->backend, e->prepared, from, to,
                                           e->times ? e->times + from * e->backend->lanes : NULL, &e->failed);
    if (st == OK && e->times)
        count_times(e, from, to);
}

/* Times of what did not run are those of nothing: an op that takes no time. */
static void scatter_times(struct exec *e, const struct lane_time *times)
{
    const int lanes = e->backend->lanes, from = e->phase_start[PHASE_DATA], to = e->phase_start[PHASE_BACKWARD + 1];
    for (int i = from, k = 0; i < to; i++) {
        struct lane_time *t = e->times + i * lanes;
        const bool ran = k < e->n_early && e->early_place[k] == i;
        const struct lane_time *before = i > from ? t - lanes : times;
        for (int lane = 0; lane < lanes; lane++)
            t[lane] = ran ? times[k * lanes + lane] : (struct lane_time){.start_ns = before[lane].end_ns, .end_ns = before[lane].end_ns};
        k += ran;
    }
}

void exec_run_early(struct exec *e)
{
    if (!e->early) {
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
        return;
    }
    exec_refresh(e);
    if (!works(e))
        return;
    struct lane_time *times = e->times ? xcalloc((size_t)(e->n_early * e->backend->lanes), sizeof *times) : NULL;
    e->touched = true;
    if (e->backend->run(e->backend, e->early, 0, e->n_early, times, &e->failed) == OK && times) {
        scatter_times(e, times);
        for (int i = 0; i < e->n_early; i++)
            count_times(e, e->early_place[i], e->early_place[i] + 1);
    }
    free(times);
}

void exec_finish(struct exec *e)
{
    if (works(e) && e->backend->finish)
        e->backend->finish(e->backend, &e->failed);
}

void exec_write(struct exec *e, value_id v, const void *host)
{
    if (e->program->values[v].kind == VALUE_PARAMETER)
        exec_settle(e);
    e->stale |= e->program->values[v].kind == VALUE_PARAMETER;
    e->touched = true;
    if (works(e))
        e->backend->upload(e->backend, e->memory[v], host, value_bytes(&e->program->values[v]), &e->failed);
}

void exec_read(struct exec *e, value_id v, void *host)
{
    const size_t bytes = value_bytes(&e->program->values[v]);
    if (e->program->values[v].kind == VALUE_PARAMETER)
        exec_settle(e);
    if (!works(e) || e->backend->download(e->backend, host, e->memory[v], bytes, &e->failed) != OK)
        memset(host, 0xff, bytes);              /* no number that could be believed */
}

float exec_scalar(struct exec *e, value_id v)
{
    float x = 0;
    exec_read(e, v, &x);
    return x;
}
