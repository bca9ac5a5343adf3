/* threads-unused, cpu-oversubscribed: training on a CPU with one thread, or with more threads than have a core. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/rules.h"
#include "core/stats.h"

static const double DIVIDED_NS = 20e3;      /* of an op's own time, from which on it is worth dividing */
static const double THREADS = 8;            /* that are thought of where there is one */
static const double GAIN = 5.2;             /* of ops, by so many: products 5.6 to 6.2, attention 5.1, elementwise 3.8 to 4.7 measured */

static bool is_serial(enum task t) { return t == TASK_SCALAR || t == TASK_EMBEDDING || t == TASK_SHAPE || t == TASK_CREATE; }

bool trace_rule_threads_unused(struct study *s, struct charge *c)
{
    if (!study_on_cpu(s) || study_threads(s) != 1)
        return false;
    double *own = study_own_ns(s), divided = 0;
    for (int32_t i = 0; i < s->v->n_host; i++)
        if (own[i] >= DIVIDED_NS && view_event(s->v, i)->kind == EVENT_HOST_OP && !is_serial(study_task(s, i))) {
            c->edit.host[i] = (uint8_t)lround(KEEP_ALL / GAIN);
            divided += own[i];
        }
    free(own);
    c->doubt = 0.2;
    c->may_win_nothing = true;              /* there may be one core */
    c->finding.where = "all ops, 1 thread";
    c->finding.cause = study_text(s, "ops run on one thread: a machine with more cores leaves them idle. How many there are is not in the trace; the gain is that "
                                  "with %.0f cores", THREADS);
    c->finding.evidence = study_text(s, "%s per step in ops that PyTorch divides among threads, and buffers for one thread; the gain is that of "
                                     "%.0f threads with a core each", study_us(s, per_step(s, divided)), THREADS);
    return divided > 0;
}

/* ---- too many ---- */

enum { LEAST_OPS = 4, LARGEST = 8 * PARALLEL_ELEMENTS };
static const double SLOWEST_NS = 0.6;       /* an element of a small cheap op on one thread: 0.3 to 0.6 measured */
static const double LONG_NS = 60e3;         /* to start and end an op on all threads; 10 to 20 µs are usual */
static const double USUAL_NS = 15e3;
static const double MULTI_LEFT = 0.2;       /* of an op over lists of tensors, which starts all threads for each of them */

/* An element costs next to nothing: what is above that is the meeting. One of gelu, exp, tanh or pow takes one thread 1.5 to 19 ns. */
static bool is_cheap(const char *name)
{
    static const char *const names[] = {"aten::add", "aten::add_", "aten::mul", "aten::mul_", "aten::copy_", "aten::fill_", "aten::zero_"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(names[k], name))
            return true;
    return false;
}

/* What it takes to have all threads work on an op: the time of small cheap ops that are divided. 0: it is no more than
 * one thread would need. */
static double meeting_ns(const struct study *s)
{
    double *took = xcalloc((size_t)s->replay->n_ops + 1, sizeof *took), *alone = xcalloc((size_t)s->replay->n_ops + 1, sizeof *alone);
    int n = 0;
    for (int32_t i = 0; i < s->v->n_host && n < s->replay->n_ops; i++) {
        if (!is_cheap(view_name(s->v, i)) || s->v->end[i] > i + 1 || !study_has(s, i))
            continue;
        const int64_t elements = dims_elements(study_dims(s, i, 0));
        if (elements <= PARALLEL_ELEMENTS || elements > LARGEST)
            continue;
        took[n] = (double)view_event(s->v, i)->duration_ns;
        alone[n++] = (double)elements * SLOWEST_NS;
    }
    double ns = 0;
    if (per_step(s, n) >= LEAST_OPS) {
        double slower = 0;
        for (int k = 0; k < n; k++)
            slower += took[k] > alone[k];
        stats_sort(took, n);
        ns = stats_percentile(took, n, 0.5);
        ns = ns >= LONG_NS && slower > 0.5 * n ? ns : 0;
    }
    free(took);
    free(alone);
    return ns;
}

/* Of an op's own time, what stays when its threads meet as fast as usual. */
static double left(const struct study *s, int32_t i, double own_ns, double meeting)
{
    const enum task t = study_task(s, i);
    if (t == TASK_MULTI)
        return MULTI_LEFT;
    const double meetings = t == TASK_NORM && study_in_backward(s, i) ? 2 : 1;
    return fmax((own_ns - meetings * (meeting - USUAL_NS)) / own_ns, USUAL_NS / (meeting + USUAL_NS));
}

bool trace_rule_cpu_oversubscribed(struct study *s, struct charge *c)
{
    const double meeting = study_on_cpu(s) ? meeting_ns(s) : 0;
    const int threads = meeting > 0 ? study_threads(s) : 0;
    if (threads < 2)
        return false;                       /* one, or not known: slow ops alone do not tell of others that are waited for */
    double *own = study_own_ns(s);
    for (int32_t i = 0; i < s->v->n_host; i++)
        if (own[i] >= 0.5 * meeting && view_event(s->v, i)->kind == EVENT_HOST_OP && !is_serial(study_task(s, i)) && study_has(s, i))
            c->edit.host[i] = (uint8_t)lround(KEEP_ALL * fmin(left(s, i, own[i], meeting), 1));
    free(own);
    c->doubt = 0.4;
    c->asks.threads = threads;
    c->finding.where = study_text(s, "all ops, %d threads", threads);
    c->finding.cause = "at every op some threads wait for one that has no core: there are more threads than cores, or other work takes them";
    c->finding.evidence = study_text(s, "small additions, products and copies take %s each on all threads, longer than one thread alone would; %s are usual; "
                                     "ops have buffers for %d threads", study_us(s, meeting), study_us(s, USUAL_NS), threads);
    return true;
}
