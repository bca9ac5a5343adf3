/* The CPU backend: memory, choice of kernels, and the loop that runs them on the team. */
#include "ops/cpu/cpu.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/claims.h"
#include "ops/cpu/cpu_int.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/room.h"

enum { MOST_THREADS = 4096 };       /* as many as the config can ask for */

struct cpu_backend {
    struct backend base;
    struct team *team;
    const struct kernel *const *tuned;      /* lists of kernels, NULL at the end; NULL: reference only */
    float *pace;                            /* matrices of cpu_pace; NULL: not asked for yet */
};

extern const struct kernel *const cpu_kernels_baseline[];
gemm_fn cpu_gemm_baseline;
registers_fn cpu_registers_baseline;
#if defined(__x86_64__)
extern const struct kernel *const cpu_kernels_avx2[], *const cpu_kernels_avx512[];
gemm_fn cpu_gemm_avx2, cpu_gemm_avx512;
registers_fn cpu_registers_avx2, cpu_registers_avx512;
#endif

struct variant {
    const char *isa;
    const struct kernel *const *kernels;
    gemm_fn *gemm;
    registers_fn *registers;
};

/* The best instruction set that was compiled in and that this CPU has. */
static struct variant best_variant(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return (struct variant){"avx512", cpu_kernels_avx512, cpu_gemm_avx512, cpu_registers_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct variant){"avx2", cpu_kernels_avx2, cpu_gemm_avx2, cpu_registers_avx2};
    return (struct variant){"sse2", cpu_kernels_baseline, cpu_gemm_baseline, cpu_registers_baseline};
#elif defined(__aarch64__)
    return (struct variant){"neon", cpu_kernels_baseline, cpu_gemm_baseline, cpu_registers_baseline};
#else
    return (struct variant){"portable", cpu_kernels_baseline, cpu_gemm_baseline, cpu_registers_baseline};
#endif
}

gemm_fn *cpu_gemm(void) { return best_variant().gemm; }
registers_fn *cpu_registers(void) { return best_variant().registers; }
const char *cpu_isa_name(void) { return best_variant().isa; }

static void *cpu_alloc(struct backend *b, size_t bytes)
{
    (void)b;
    return cpu_memory_take(bytes);
}

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

struct memory_part {
    volatile char *at;
    size_t bytes;
    int members;
};

static void touch_pages(void *argument, int member)
{
    const struct memory_part *m = argument;
    for (size_t large = (size_t)member * LARGE_PAGE; large < m->bytes; large += (size_t)m->members * LARGE_PAGE)
        for (size_t i = large; i < m->bytes && i < large + LARGE_PAGE; i += PAGE)
            m->at[i] = 0;
}

/* The node of the thread that touches a page first has it. What a step makes is first written by those who work on it; weights, which all read, are
 * written by one thread, and would all come from its node. */
static void cpu_spread(struct backend *base, void *memory, size_t bytes)
{
    struct cpu_backend *b = (struct cpu_backend *)base;
    struct memory_part m = {memory, bytes, team_size(b->team)};
    if (team_nodes(b->team) > 1)
        team_run(b->team, touch_pages, &m);
}

static void cpu_free_memory(struct backend *b, void *memory, size_t bytes)
{
    (void)b, (void)bytes;
    cpu_memory_give(memory);
}

static size_t cpu_available(struct backend *b)
{
    (void)b;
    return cpu_available_bytes();
}

static enum status cpu_copy(struct backend *b, void *to, const void *from, size_t bytes, struct error *err)
{
    (void)b, (void)err;
    memcpy(to, from, bytes);
    return OK;
}

/* ---- kernels ---- */

static const struct kernel *find(const struct kernel *list, const struct program *p, const struct op *op)
{
    for (const struct kernel *k = list; k->run; k++)
        if (k->op == op->kind && (!k->supports || k->supports(p, op)))
            return k;
    return NULL;
}

const struct kernel *cpu_choose(struct backend *base, const struct program *p, const struct op *op)
{
    struct cpu_backend *b = (struct cpu_backend *)base;
    const bool narrow = p && op_has_narrow_values(p, op), ahead = narrow && (op->kind == OP_CAST || op_is_rounded_ahead(p, op));
    for (const struct kernel *const *list = b->tuned; list && *list; list++) {
        const struct kernel *k = find(*list, p, op);
        if (k && (!narrow || (ahead && k->stores)))
            return k;
    }
    return narrow ? &cpu_narrow_kernel : find(cpu_reference_kernels, p, op);
}

struct blocks cpu_blocks(const struct kernel *k, const struct program *p, const struct op *op, int threads)
{
    return k->split ? k->split(p, op, threads) : (struct blocks){1, 1, 1};
}

enum { SCRATCH_ALIGN = 64 };

static size_t own_scratch(struct backend *b, const struct kernel *k, const struct program *p, const struct op *op)
{
    return k->scratch ? (k->scratch(p, op, b->lanes) + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN : 0;
}

/* Ops that are one call are alike, and each has scratch of its own; one behind the other they take no more than this. */
static const size_t MOST_BESIDE = (size_t)32 << 20;

/* How many of them have their own: where there is not room for all, they take turns. */
static size_t places_of(struct op_call call, size_t each)
{
    const size_t n = (size_t)(call.end - call.first);
    return n * each <= MOST_BESIDE || each == 0 ? n : MOST_BESIDE / each > 1 ? MOST_BESIDE / each : 1;
}

static struct op_call call_of(const struct program *p, const struct op *op)
{
    return op->call ? program_call(p, (int)(op - p->ops)) : (struct op_call){0, 1};
}

static enum status cpu_scratch(struct backend *b, size_t *bytes, const struct program *p, const struct op *op, struct error *err)
{
    const struct kernel *k = cpu_choose(b, p, op);
    if (!k)
        return error_set(err, CANNOT, "the cpu backend has no kernel for op %s", op_info(op->kind)->name);
    const size_t own = cpu_sums(k, p, op, b->lanes) ? 0 : own_scratch(b, k, p, op);
    *bytes = own * places_of(call_of(p, op), own);
    return OK;
}

/* Where in the program's scratch that of an op begins. */
static size_t scratch_place(const struct program *p, const struct op *op, size_t own)
{
    const struct op_call call = call_of(p, op);
    return op->call ? ((size_t)(op - p->ops) - (size_t)call.first) % places_of(call, own) * own : 0;
}

/* Memory of what threads leave for sums, which are made when they meet: one behind the other, and from the beginning again. Where that is too soon, waits.c
 * finds another meeting: with room for four calls some steps of the shipped configs would have more of them. */
struct kept {
    char *at;
    size_t size, used;
};
enum { KEPT_CALLS = 6, KEPT_LEAST = 2 };
static const size_t MOST_KEPT = (size_t)64 << 20;      /* beyond that it is room for KEPT_LEAST calls */

struct kept_needs { size_t all, largest; };

static void count_kept(struct kept_needs *s, struct backend *b, const struct program *p, const struct op *op)
{
    const struct kernel *k = cpu_choose(b, p, op);
    const size_t own = k && cpu_sums(k, p, op, b->lanes) ? own_scratch(b, k, p, op) : 0;
    s->all += own;
    s->largest = own > s->largest ? own : s->largest;
}

static size_t kept_size(const struct kept_needs *s)
{
    const size_t wanted = s->all < KEPT_CALLS * s->largest ? s->all : KEPT_CALLS * s->largest, least = s->all < KEPT_LEAST * s->largest ? s->all : KEPT_LEAST * s->largest;
    return wanted < MOST_KEPT ? wanted : least > MOST_KEPT ? least : MOST_KEPT;
}

static void *take_kept(struct kept *s, size_t bytes)
{
    assert(bytes <= s->size);
    s->used = s->used + bytes > s->size ? bytes : s->used + bytes;
    return s->at + s->used - bytes;
}

static size_t cpu_kept(struct backend *b, const struct program *p)
{
    struct kept_needs s = {0};
    for (int i = 0; i < p->n_ops; i++)
        count_kept(&s, b, p, &p->ops[i]);
    return kept_size(&s);
}

/* ---- a list of calls ---- */

struct prepared {
    struct kernel_call *calls;
    int n;
    struct arena names;             /* of kernels with a variant, or with blocks */
    const char **kernels;
    struct claims *claims;          /* NULL: there are none */
};

/* "blocks 8×2/thirds": rows and columns of blocks, where there are several, and the variant, where it was chosen. */
static void name_kernels(struct prepared *p)
{
    for (int i = 0; i < p->n; i++) {
        const struct kernel_call *c = &p->calls[i];
        const struct kernel *k = c->kernel;
        const struct blocks s = c->blocks;
        const char *name = s.rows * s.columns > 1 ? arena_printf(&p->names, "%s %d×%d", k->name, s.rows, s.columns) : k->name;
        if (s.depth > 1)
            name = arena_printf(&p->names, "%s %d×%d×%d", k->name, s.rows, s.columns, s.depth);
        p->kernels[i] = c->variant ? arena_printf(&p->names, "%s/%s", name, k->variants[c->variant]) : name;
    }
}

/* Memory for all calls, and for sums. */
struct rooms {
    char *scratch;
    size_t bytes;
    struct kept *kept;
};

/* Kernels with shares divide all that there is, so that a thread has the same part of it in each of their calls. */
static void give_scratch(struct kernel_call *c, size_t own, const struct rooms *r)
{
    const bool all = own && c->kernel->share && !c->op->call && !c->sums;
    c->scratch = c->sums ? take_kept(r->kept, own) : r->scratch + scratch_place(c->program, c->op, own);
    c->scratch_bytes = all ? r->bytes : own;
}

static struct kernel_call bind_call(struct backend *b, const struct bound_op *o, const struct rooms *r)
{
    const struct kernel *k = cpu_choose(b, o->program, o->op);
    assert(o->program);
    struct kernel_call c = {.kernel = k, .program = o->program, .op = o->op, .in = o->in, .out = o->out, .leave = o->leave, .comm = b->comm,
                            .blocks = cpu_blocks(k, o->program, o->op, b->lanes)};
    if (cpu_sums(k, o->program, o->op, b->lanes))
        c.sums = o->leave ? SUMS_NOW : SUMS_LATER;         /* who is left out is so until then */
    give_scratch(&c, own_scratch(b, k, o->program, o->op), r);
    return c;
}

static enum status cpu_prepare(struct backend *b, struct prepared **out, const struct bound_op *ops, int n, void *scratch,
                               size_t bytes, struct error *err)
{
    (void)err;
    struct kept_needs needs = {0};
    for (int i = 0; i < n; i++)
        count_kept(&needs, b, ops[i].program, ops[i].op);
    struct kept kept = {.size = kept_size(&needs)};
    kept.at = (char *)scratch + bytes - kept.size;
    struct prepared *p = xcalloc(1, sizeof *p);
    p->calls = xcalloc((size_t)n + 1, sizeof *p->calls);
    p->kernels = xcalloc((size_t)n + 1, sizeof *p->kernels);
    p->n = n;
    for (int i = 0; i < n; i++)
        p->calls[i] = bind_call(b, &ops[i], &(struct rooms){scratch, bytes - kept.size, &kept});
    cpu_find_waits(p->calls, n, b->lanes);
    cpu_tune(b, p->calls, n);
    p->claims = claims_find(p->calls, n, b->lanes);
    name_kernels(p);
    *out = p;
    return OK;
}

static struct prepared_op cpu_about(const struct prepared *p, int i)
{
    return (struct prepared_op){p->kernels[i], p->calls[i].saves_us, 0};
}

static void cpu_release(struct backend *b, struct prepared *p)
{
    (void)b;
    if (!p)
        return;
    arena_release(&p->names);
    claims_free(p->claims);
    free(p->kernels);
    free(p->calls);
    free(p);
}

/* ---- running it ---- */

struct run {
    struct cpu_backend *backend;
    struct kernel_call *calls;
    int n;
    struct lane_time *times;        /* (n, threads), or NULL */
    int *at;                        /* (threads): the call that each is in, or -1 behind it; NULL where there are no times */
    struct claims *claims;          /* NULL: nothing is updated */
    int first;                      /* calls of the list before these */
};

static bool runs(const struct kernel_call *c, int member) { return (!c->kernel->serial || member == 0) && !(c->leave && *c->leave == 0); }

/* All threads meet, and make the sums of calls [first, end). */
static void meet(const struct run *r, const struct kernel_thread *t, int first, int end)
{
    team_barrier(t->team);
    for (int i = first; i < end; i++) {
        struct lane_time *time = r->times ? &r->times[i * t->count + t->index] : NULL;
        if (r->calls[i].sums != SUMS_LATER)
            continue;
        if (time)
            time->sums_start_ns = clock_ns();
        r->calls[i].kernel->finish(&r->calls[i], t);
        if (time)
            time->sums_end_ns = clock_ns();
    }
}

static bool has_sums(const struct kernel_call *calls, int n)
{
    for (int i = 0; i < n; i++)
        if (calls[i].sums == SUMS_LATER)
            return true;
    return false;
}

/* A thread's part of a call, with sums that are not left for later. */
static void run_call(const struct kernel_call *c, const struct kernel_thread *t)
{
    c->kernel->run(c, t);
    if (c->sums == SUMS_NOW) {
        team_barrier(t->team);
        c->kernel->finish(c, t);
    }
}

/* A thread has done a piece of what another has to do. Where it waits inside a call, that call's time has it already. */
static void note_help(void *argument, int owner, int helper, int64_t start_ns, int64_t end_ns)
{
    const struct run *r = argument;
    if (r->at[helper] >= 0)
        return;
    assert(r->at[owner] >= 0);                  /* sums are not shared out */
    struct lane_time *time = &r->times[r->at[owner] * team_size(r->backend->team) + helper];
    time->help_start_ns = time->help_ns ? time->help_start_ns : start_ns;
    time->help_ns += end_ns - start_ns;
}

static void claim_line(void *argument, int member)
{
    const struct run *r = argument;
    claims_take(r->claims, member);
}

static void run_calls(void *argument, int member)
{
    const struct run *r = argument;
    const struct kernel_thread t = {member, team_size(r->backend->team), r->backend->team};
    int met = 0;                    /* the first call since all have met */
    if (r->claims)
        claims_begin(r->claims, member);
    for (int i = 0; i < r->n; i++) {
        const struct kernel_call *c = &r->calls[i];
        struct lane_time *time = r->times ? &r->times[i * t.count + member] : NULL;
        if (!c->early && i > 0) {
            meet(r, &t, met, i);
            met = i;
            if (c->settled)
                team_barrier(t.team);
        }
        if (c->comm && member == 0) {
            atomic_store_explicit(&c->comm->of, c->program, memory_order_relaxed);
            atomic_store_explicit(&c->comm->at, c->op, memory_order_release);
        }
        if (r->claims)
            claims_reach(r->claims, member, r->first + i, r->first + met);
        if (time) {
            r->at[member] = i;
            time->help_ns = 0;                  /* who helps with a call has had its own part of it */
            time->start_ns = clock_ns();
        }
        if (runs(c, member))
            run_call(c, &t);
        if (time) {
            time->end_ns = clock_ns();
            r->at[member] = -1;
        }
    }
    if (has_sums(r->calls + met, r->n - met))
        meet(r, &t, met, r->n);
}

/* Calls that are timed one by one: nobody helps, what a thread takes is its own. */
void cpu_run_calls(struct backend *base, struct kernel_call *calls, int n)
{
    struct cpu_backend *b = (struct cpu_backend *)base;
    team_run(b->team, run_calls, &(struct run){.backend = b, .calls = calls, .n = n});
}

static struct claims *claims_of(const struct prepared *p, int first, int end)
{
    return p->claims && first <= claims_until(p->claims) && claims_until(p->claims) < end ? p->claims : NULL;
}

static enum status cpu_run(struct backend *base, struct prepared *p, int first, int end, struct lane_time *times, struct error *err)
{
    (void)err;
    struct cpu_backend *b = (struct cpu_backend *)base;
    struct run r = {b, p->calls + first, end - first, times, times ? xcalloc((size_t)team_size(b->team), sizeof *r.at) : NULL, claims_of(p, first, end), first};
    team_run_helping(b->team, run_calls, &r, &(struct team_habits){times ? note_help : NULL, r.claims ? claim_line : NULL});
    free(r.at);
    return OK;
}

/* ---- the backend ---- */

static void cpu_free(struct backend *base)
{
    struct cpu_backend *b = (struct cpu_backend *)base;
    if (!b)
        return;
    team_free(b->team);
    cpu_memory_give(b->pace);
    free(b);
}

float *cpu_pace_room(struct backend *base)
{
    struct cpu_backend *b = (struct cpu_backend *)base;
    b->pace = b->pace ? b->pace : cpu_pace_matrices(base->lanes);
    return b->pace;
}

enum status cpu_backend_new(struct backend **out, int threads, bool reference_only, struct error *err)
{
    if (!reference_only && cpu_blas_ready(err) != OK)       /* found and checked while no other thread works */
        return CANNOT;
    struct cpu_backend *b = xcalloc(1, sizeof *b);
    const int cores = cpu_usable_cores();
    b->base = (struct backend){
        .name = "cpu", .lanes = threads > 0 ? threads : cores < MOST_THREADS ? cores : MOST_THREADS, .available = cpu_available,
        .alloc = cpu_alloc, .spread = cpu_spread, .free_memory = cpu_free_memory, .upload = cpu_copy, .download = cpu_copy, .scratch = cpu_scratch, .kept = cpu_kept,
        .prepare = cpu_prepare, .about = cpu_about, .run = cpu_run, .pace = reference_only ? NULL : cpu_pace, .release = cpu_release, .free = cpu_free};
    b->tuned = reference_only ? NULL : best_variant().kernels;
    enum status st = team_new(&b->team, b->base.lanes, err);
    if (st == OK && !reference_only)
        st = gemm_rooms_make(b->team, err);
    if (st != OK) {
        team_free(b->team);
        free(b);
        return st;
    }
    *out = &b->base;
    return OK;
}

struct team *cpu_team(struct backend *b) { return ((struct cpu_backend *)b)->team; }
