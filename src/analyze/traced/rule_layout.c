/* layout-copies: tensors are copied only to change how they lie in memory. */
#include <string.h>

#include "analyze/traced/rules.h"

/* A copy on the device between equal types: contiguous, clone, and reshape where a view does not do. */
static bool is_layout_copy(const struct study *s, int32_t top)
{
    if (study_launches(s, top) == 0)
        return false;
    const char *name = view_name(s->v, top);
    return strstr(name, "contiguous") || strstr(name, "clone") || strstr(name, "reshape") || strstr(name, "flatten");
}

bool trace_rule_layout_copies(struct study *s, struct charge *c)
{
    int n = 0;
    double ns = 0;
    int32_t example = -1;
    for (int32_t k = 0; k < s->n_top; k++) {
        const int32_t top = s->top[k];
        if (study_is_backward(s, k) || !is_layout_copy(s, top) || study_annotation(s, top, "Optimizer") >= 0)
            continue;
        n++;
        ns += study_device_ns(s, top);
        charge_with_backward(s, c, top, 0);
        if (example < 0 || study_device_ns(s, top) > study_device_ns(s, example))
            example = top;
    }
    if (!n)
        return false;
    c->doubt = 0.5;
    c->finding.where = study_where(s, example);
    c->finding.cause = "tensors are copied to another order of dimensions; nothing is computed";
    c->finding.evidence = study_text(s, "such copies per step in forward: %s, %s of the device per step",
                                     study_number(s, per_step(s, n)), study_us(s, per_step(s, ns)));
    return true;
}
