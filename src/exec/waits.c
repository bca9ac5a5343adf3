/* Where the threads must meet: a thread may begin a call while others are still in the ones before, unless one of them writes what the
 * other touches. That is asked of memory, not of values: values that do not live at the same time share it, and all calls that
 * need scratch have the same. */
#include "exec/exec_int.h"

struct range { const char *lo, *hi; };

static bool overlap(struct range a, struct range b) { return a.lo < b.hi && b.lo < a.hi; }

/* What a call touches: its inputs; then what it writes: its outputs and its scratch. */
static int touched(const struct kernel_call *c) { return c->op->n_in + c->op->n_out + (c->kernel->scratch ? 1 : 0); }

static struct range memory_of(const struct kernel_call *c, int i, size_t scratch)
{
    const struct op *op = c->op;
    const bool is_in = i < op->n_in;
    if (i == op->n_in + op->n_out)
        return (struct range){c->scratch, (const char *)c->scratch + scratch};
    const char *at = is_in ? c->in[i] : c->out[i - op->n_in];
    return (struct range){at, at + value_bytes(&c->program->values[is_in ? op->in[i] : op->out[i - op->n_in]])};
}

static bool writes_into(const struct kernel_call *a, const struct kernel_call *b, size_t scratch)
{
    for (int i = a->op->n_in; i < touched(a); i++)
        for (int k = 0; k < touched(b); k++)
            if (overlap(memory_of(a, i, scratch), memory_of(b, k, scratch)))
                return true;
    return false;
}

void exec_find_waits(struct kernel_call *calls, int n, size_t scratch)
{
    int first = 0;                          /* of the calls that threads may be in at the same time */
    for (int i = 0; i < n; i++) {
        struct kernel_call *c = &calls[i];
        c->early = c->program->fewer_meetings;
        for (int k = first; k < i && c->early; k++)
            c->early = !writes_into(&calls[k], c, scratch) && !writes_into(c, &calls[k], scratch);
        if (!c->early)
            first = i;
    }
}
