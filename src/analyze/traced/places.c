/* Lines of Python for a diagnosis whose trace has none, from another recording of the same program that has: stacks make the host so much
 * slower that times are better taken without them. */
#include <string.h>

#include "analyze/traced/judge.h"

static const struct finding *same_rule(const struct diagnosis *d, const char *rule)
{
    for (int i = 0; i < d->n_findings; i++)
        if (!strcmp(d->findings[i].rule, rule))
            return &d->findings[i];
    return NULL;
}

/* "model.py(12): forward": of a frame, as opposed to an op. */
static bool names_a_line(const char *where) { return where && strstr(where, ".py("); }

static void take_modules(struct diagnosis *d, const struct diagnosis *from)
{
    d->modules = arena_copy(&d->arena, from->modules, (size_t)from->n_modules * sizeof *from->modules);
    d->n_modules = from->n_modules;
    d->modules_are_ranges = from->modules_are_ranges;
    for (int i = 0; i < d->n_modules; i++)
        d->modules[i].name = arena_printf(&d->arena, "%s", from->modules[i].name);
}

static void take_frames(struct diagnosis *d, const struct diagnosis *from)
{
    d->frames = arena_copy(&d->arena, from->frames, (size_t)from->n_frames * sizeof *from->frames);
    d->n_frames = from->n_frames;
    for (int i = 0; i < d->n_frames; i++)
        d->frames[i].name = arena_printf(&d->arena, "%s", from->frames[i].name);
}

void diagnosis_take_places(struct diagnosis *d, const struct diagnosis *stacks)
{
    for (int i = 0; i < d->n_findings; i++) {
        const struct finding *f = same_rule(stacks, d->findings[i].rule);
        if (f && names_a_line(f->where) && !names_a_line(d->findings[i].where))
            d->findings[i].where = arena_printf(&d->arena, "%s", f->where);
    }
    if (stacks->n_modules)
        take_modules(d, stacks);
    if (stacks->n_frames)
        take_frames(d, stacks);
    d->lines_known = true;
    judge_confidence(d);
}
