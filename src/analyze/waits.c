/* Behind which ops threads wait for others. */
#include <string.h>

#include "analyze/profile.h"
#include "analyze/rules.h"

static bool alike(const struct profile_op *a, const struct profile_op *b) { return !strcmp(a->kind, b->kind) && !strcmp(a->kernel, b->kernel); }

/* What threads wait behind ops of one kind and one kernel, how many those are, and which has most of it. */
struct wait { double us; int ops, worst; };

static struct wait wait_behind(const struct profile *p, int like)
{
    struct wait w = {.worst = like};
    for (int i = 0; i < p->n_ops; i++)
        if (alike(&p->ops[like], &p->ops[i])) {
            w.us += p->ops[i].imbalance_us;
            w.ops++;
            w.worst = p->ops[i].imbalance_us > p->ops[w.worst].imbalance_us ? i : w.worst;
        }
    return w;
}

/* "matmul (blocks 8x2), 44 ops: 1.2 ms; most of it behind blocks.3.down": the kernel says how they are cut. */
void profile_fill_waits(struct profile *p)
{
    struct wait most = {0};
    for (int i = 0; i < p->n_ops && !p->gpu; i++) {
        const struct wait w = p->ops[i].imbalance_us > 0 ? wait_behind(p, i) : most;
        most = w.us > most.us ? w : most;
    }
    if (!(most.us > 0))
        return;
    const struct profile_op *o = &p->ops[most.worst];
    const char *kernel = *o->kernel ? arena_printf(&p->arena, " (%s)", o->kernel) : "";
    p->waits_behind = arena_printf(&p->arena, "%s%s, %d op%s: %s; most of it behind %s", o->kind, kernel, most.ops, most.ops == 1 ? "" : "s",
                                   text_us(&p->arena, most.us), *o->name ? o->name : o->kind);
}
