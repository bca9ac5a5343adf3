/* Where the threads must meet: a thread may begin a call while others are still in the ones before, unless one of them writes what the
 * other touches. That is asked of memory, not of values: values that do not live at the same time share it, and calls that
 * need scratch may have the same. Where kernels say which rows a thread touches, thread by thread: what a thread has made itself it does not wait for. Without
 * fewer meetings that holds for ops that are one call alone.
 *
 * Sums of what threads have left behind are made when they meet the next time, for all calls since the last; until then nobody may touch what they are
 * made of and what they become, and whoever wants to waits until they are made: another meeting. */
#include "core/ranges.h"
#include "ops/cpu/kernel.h"

/* What a call touches: its inputs, and what says whether it is left out; then what it writes: its outputs and its scratch. */
static int reads(const struct kernel_call *c) { return c->op->n_in + (c->leave ? 1 : 0); }
static int touched(const struct kernel_call *c) { return reads(c) + c->op->n_out + (c->scratch_bytes ? 1 : 0); }

static struct range rows_of(struct range all, struct span rows, int64_t of)
{
    const int64_t row = (int64_t)(all.hi - all.lo) / of;
    return (struct range){all.lo + (size_t)(rows.lo * row), all.lo + (size_t)(rows.hi * row)};
}

static struct range value_of(const struct kernel_call *c, bool is_in, int i, const struct share *s)
{
    const size_t at = (size_t)(is_in ? c->in[i] : c->out[i]);
    const struct range all = {at, at + value_bytes(&c->program->values[is_in ? c->op->in[i] : c->op->out[i]])};
    return s->of && i < 32 && (is_in ? s->in : s->out) >> i & 1 ? rows_of(all, s->rows, s->of) : all;
}

/* What a thread touches of it. */
static struct range memory_of(const struct kernel_call *c, int i, const struct share *s, int thread, int threads)
{
    const struct op *op = c->op;
    const int out = i - reads(c);
    if (i < op->n_in)
        return value_of(c, true, i, s);
    if (out < 0)
        return (struct range){(size_t)c->leave, (size_t)c->leave + sizeof *c->leave};
    if (out < op->n_out)
        return value_of(c, false, out, s);
    const size_t at = (size_t)c->scratch, each = call_scratch_each(c, threads);
    return s->of ? (struct range){at + (size_t)thread * each, at + (size_t)(thread + 1) * each} : (struct range){at, at + c->scratch_bytes};
}

/* What a thread touches in the calls that threads may be in at the same time. */
struct touch { struct ranges all, written; };

/* Threads one by one, where they are not many: else all touch what any does. */
enum { MOST = 16 };
struct together {
    struct touch each[MOST];
    int n;
    struct ranges kept, summed;     /* what belongs to sums that the next meeting makes, and the last one */
};

/* A call that makes its sums at once touches all of what they are made of and become: it has no share. */
static struct share share_of(const struct kernel_call *c, int thread, int n)
{
    return n > 1 && c->kernel->share && c->sums != SUMS_NOW ? c->kernel->share(c, &(struct kernel_thread){thread, n, NULL}) : (struct share){0};
}

/* Whether it is a matter of sums: outputs that they become. Their scratch is one of `run`, too. */
static bool is_sum(const struct kernel_call *c, int i)
{
    const int out = i - reads(c);
    return c->sums == SUMS_LATER && out >= 0 && out < c->op->n_out && c->kernel->summed >> out & 1;
}

/* What all threads together touch of it. */
static struct range whole_of(const struct kernel_call *c, int i) { return memory_of(c, i, &(struct share){0}, 0, 1); }

static void add(struct together *to, const struct kernel_call *c)
{
    for (int i = reads(c); i < touched(c) && c->sums == SUMS_LATER; i++)
        if (is_sum(c, i) || i == reads(c) + c->op->n_out)
            ranges_add(&to->kept, whole_of(c, i));
    for (int t = 0; t < to->n; t++) {
        const struct share s = share_of(c, t, to->n);
        for (int i = 0; i < touched(c); i++) {
            if (is_sum(c, i))
                continue;
            const struct range r = memory_of(c, i, &s, t, to->n);
            ranges_add(&to->each[t].all, r);
            if (i >= reads(c))
                ranges_add(&to->each[t].written, r);
        }
    }
}

/* Whether one of the threads, but for `but`, writes there, or touches it at all. */
static bool hits(const struct together *w, int but, bool writes, struct range r)
{
    for (int t = 0; t < w->n; t++)
        if (t != but && ranges_hit(writes ? &w->each[t].all : &w->each[t].written, r))
            return true;
    return false;
}

static bool collides(const struct together *w, const struct kernel_call *c)
{
    for (int t = 0; t < w->n; t++) {
        const struct share s = share_of(c, t, w->n);
        for (int i = 0; i < touched(c); i++)
            if (!is_sum(c, i) && hits(w, s.of ? t : -1, i >= reads(c), memory_of(c, i, &s, t, w->n)))
                return true;
        if (!s.of)
            return false;               /* it is the same for all */
    }
    return false;
}

/* Whether it wants what belongs to sums. */
static bool wants(const struct ranges *sums, const struct kernel_call *c)
{
    for (int i = 0; i < touched(c); i++)
        if (ranges_hit(sums, whole_of(c, i)))
            return true;
    return false;
}

/* All threads are there, and go on to make the sums of the calls before. */
static void meet(struct together *w)
{
    const struct ranges made = w->summed;
    for (int t = 0; t < w->n; t++) {
        ranges_clear(&w->each[t].all);
        ranges_clear(&w->each[t].written);
    }
    w->summed = w->kept;
    w->kept = made;
    ranges_clear(&w->kept);
}

static void release(struct together *w)
{
    for (int t = 0; t < w->n; t++) {
        ranges_release(&w->each[t].all);
        ranges_release(&w->each[t].written);
    }
    ranges_release(&w->kept);
    ranges_release(&w->summed);
}

/* Whether threads may be in this call and in the one before it at all. */
static bool may_be_early(const struct kernel_call *calls, int i)
{
    const struct op *op = calls[i].op, *before = i > 0 ? calls[i - 1].op : NULL;
    return calls[i].program->fewer_meetings || (before && op->call && op->call == before->call && op->phase == before->phase);
}

bool cpu_sums(const struct kernel *k, const struct program *p, const struct op *op, int threads)
{
    return k->finish && (!k->sums || k->sums(p, op, threads));
}

void cpu_find_waits(struct kernel_call *calls, int n, int threads)
{
    struct together together = {.n = threads <= MOST ? threads : 1};
    for (int i = 0; i < n; i++) {
        struct kernel_call *c = &calls[i];
        c->early = may_be_early(calls, i) && !collides(&together, c) && !wants(&together.kept, c) && !wants(&together.summed, c);
        if (!c->early)
            meet(&together);
        c->settled = wants(&together.summed, c);
        if (c->settled)
            meet(&together);
        add(&together, c);
    }
    release(&together);
}
