/* The parts of a view, each in its own file: view_order.c, view_links.c, view_steps.c, view_python.c, kinds.c. */
#ifndef HONE_ANALYZE_TRACED_VIEW_INT_H
#define HONE_ANALYZE_TRACED_VIEW_INT_H

#include "analyze/traced/view.h"

static inline struct step_window step_window_new(int64_t number, int64_t start_ns, int64_t end_ns)
{
    return (struct step_window){number, start_ns, end_ns, start_ns, end_ns, start_ns, false, INT64_MIN, false};
}

bool view_places(const struct trace *t, const struct event *e);       /* it is a call of a host thread, or work of a device */
/* Makes times possible, then sorts: fills n_host, python, n_python, device, n_device. */
void view_order(struct view *v);
void view_nest(struct view *v);             /* parent, end */
void view_nest_python(struct view *v);      /* the frame around each Python frame, in its event.step */
void view_name_kinds(struct view *v);       /* kernel_kinds, call_kinds */
void view_link(struct view *v);             /* launched, launch, next_launched; needs the kinds */
void view_link_captures(struct view *v);    /* captured; needs the links */
void view_find_watchers(struct view *v);    /* watches; needs the links */
void view_mark_steps(struct view *v);       /* steps, event.step; needs the links */
void view_infer_steps(struct view *v);      /* steps where there are no marks; steps_by */
void view_renumber(struct view *v, const int32_t *to);      /* events of step i go to step to[i]; -1: to none */
int64_t view_first_other(const struct view *v);     /* where the events begin that are neither host, Python nor device */

enum kernel_kind kind_of_kernel(const char *name);      /* KERNEL_OTHER: the name does not say */
enum kernel_kind kind_of_op(const char *name);          /* what the kernels of a host op do; KERNEL_OTHER: unknown */
bool name_is_collective(const char *name);
enum call_kind kind_of_call(const char *name);
bool kind_is_work(enum call_kind kind);     /* the call starts work on a device: launch, graph, copy or fill */

#endif
