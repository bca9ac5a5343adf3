/* Where the threads must meet: a thread may begin a call while others are still in the ones before, unless one of them writes what the
 * other touches. That is asked of memory, not of values: values that do not live at the same time share it, and calls that
 * need scratch may have the same. A call in which threads meet leaves nobody in the calls before it. Without fewer meetings that holds for ops that are
 * one call alone. */
#include "core/ranges.h"
#include "ops/cpu/kernel.h"

/* What a call touches: its inputs, and what says whether it is left out; then what it writes: its outputs and its scratch. */
static int reads(const struct kernel_call *c) { return c->op->n_in + (c->leave ? 1 : 0); }
static int touched(const struct kernel_call *c) { return reads(c) + c->op->n_out + (c->scratch_bytes ? 1 : 0); }

static struct range memory_of(const struct kernel_call *c, int i)
{
    const struct op *op = c->op;
    const bool is_in = i < op->n_in;
    const int out = i - reads(c);
    if (!is_in && out < 0)
        return (struct range){(size_t)c->leave, (size_t)c->leave + sizeof *c->leave};
    if (out == op->n_out)
        return (struct range){(size_t)c->scratch, (size_t)c->scratch + c->scratch_bytes};
    const size_t at = (size_t)(is_in ? c->in[i] : c->out[out]);
    return (struct range){at, at + value_bytes(&c->program->values[is_in ? op->in[i] : op->out[out]])};
}

/* What the calls touch that threads may be in at the same time. */
struct touch { struct ranges all, written; };

static void add(struct touch *t, const struct kernel_call *c)
{
    for (int i = 0; i < touched(c); i++) {
        const struct range r = memory_of(c, i);
        ranges_add(&t->all, r);
        if (i >= reads(c))
            ranges_add(&t->written, r);
    }
}

static bool collides(const struct touch *t, const struct kernel_call *c)
{
    for (int i = 0; i < touched(c); i++)
        if (ranges_hit(i < reads(c) ? &t->written : &t->all, memory_of(c, i)))
            return true;
    return false;
}

/* Whether threads may be in this call and in the one before it at all. */
static bool may_be_early(const struct kernel_call *calls, int i)
{
    const struct op *op = calls[i].op, *before = i > 0 ? calls[i - 1].op : NULL;
    return calls[i].program->fewer_meetings || (before && op->call && op->call == before->call && op->phase == before->phase);
}

bool cpu_call_meets(const struct kernel *k, const struct program *p, const struct op *op, int threads)
{
    return k->meets && !op->leave && k->meets(p, op, threads);
}

void cpu_find_waits(struct kernel_call *calls, int n, int threads)
{
    struct touch together = {0};
    for (int i = 0; i < n; i++) {
        struct kernel_call *c = &calls[i];
        c->early = may_be_early(calls, i) && !collides(&together, c);
        if (!c->early || cpu_call_meets(c->kernel, c->program, c->op, threads)) {
            ranges_clear(&together.all);
            ranges_clear(&together.written);
        }
        add(&together, c);
    }
    ranges_release(&together.all);
    ranges_release(&together.written);
}
