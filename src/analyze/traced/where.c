/* Where something is, in the user's words: a line and a module of the model where stacks were recorded, else a range or the op around. */
#include <string.h>

#include "analyze/traced/study.h"

static const char module_head[] = "nn.Module: ";

/* The user's own module around a frame: "CausalSelfAttention_3"; NULL: none. */
static const char *module_around(const struct view *v, int32_t frame)
{
    for (; frame >= 0; frame = view_event(v, frame)->step)
        if (!strncmp(view_name(v, frame), module_head, sizeof module_head - 1))
            return view_name(v, frame) + sizeof module_head - 1;
    return NULL;
}

/* "model.py(12): forward (CausalSelfAttention_3)" of the user's frame around a call; NULL: none was recorded. */
static const char *frame_place(const struct study *s, int32_t host)
{
    const struct event *e = view_event(s->v, host);
    const int32_t frame = view_python_at(s->v, e->track, e->start_ns, false);
    if (frame < 0)
        return NULL;
    const char *module = module_around(s->v, frame);
    return module ? study_text(s, "%.200s (%.60s)", view_name(s->v, frame), module) : study_text(s, "%.200s", view_name(s->v, frame));
}

/* The first frame of the user's in a stack as old traces have it, "a.py(1): f;b.py(2): g"; its first one where all are of libraries. */
static const char *stack_place(const struct study *s, int32_t host)
{
    const int32_t args = view_event(s->v, host)->args;
    const int32_t text = args >= 0 ? s->v->trace->args[args].stack : -1;
    if (text < 0)
        return NULL;
    const char *stack = s->v->trace->names[text], *first = NULL;
    for (const char *at = stack; *at; at += strcspn(at, ";") + (at[strcspn(at, ";")] == ';')) {
        const char *frame = study_text(s, "%.*s", (int)strcspn(at, ";"), at);
        first = first ? first : frame;
        if (frame_is_users(frame))
            return frame;
    }
    return first;
}

/* Not those that PyTorch names. */
bool study_is_range(const struct study *s, int32_t host)
{
    static const char *const of_torch[] = {"ProfilerStep", "Optimizer.", "enumerate(DataLoader)", "nccl:", "gloo:", "c10d::", "Torch-Compiled",
                                           "##", "PyTorch Profiler", "Iteration Start"};
    if (view_event(s->v, host)->kind != EVENT_ANNOTATION)
        return false;
    for (size_t k = 0; k < sizeof of_torch / sizeof *of_torch; k++)
        if (!strncmp(view_name(s->v, host), of_torch[k], strlen(of_torch[k])))
            return false;
    return true;
}

static const char *range_place(const struct study *s, int32_t host)
{
    for (int32_t i = s->v->parent[host]; i >= 0; i = s->v->parent[i])
        if (study_is_range(s, i))
            return study_text(s, "%.200s", view_name(s->v, i));
    return NULL;
}

static const char *place_at(const struct study *s, int32_t host)
{
    const char *place = frame_place(s, host);
    place = place ? place : stack_place(s, host);
    return place ? place : range_place(s, host);
}

const char *study_place(const struct study *s, int32_t host)
{
    const char *place = place_at(s, host);
    const int32_t op = place ? -1 : study_forward_of(s, host);         /* backward runs where no code of the user's is */
    const char *forward = op >= 0 ? place_at(s, op) : NULL;
    return forward ? study_text(s, "the backward of %s", forward) : place;
}

const char *study_where(const struct study *s, int32_t host)
{
    const char *place = study_place(s, host);
    if (place)
        return study_text(s, "%.200s, in %s", view_name(s->v, host), place);
    const int32_t top = study_top(s, host);
    if (top >= 0 && top != host)
        return study_text(s, "%.200s, inside %.200s", view_name(s->v, host), view_name(s->v, top));
    return study_text(s, "%.200s", view_name(s->v, host));
}
