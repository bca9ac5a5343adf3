/* The code of a fix: the rule's text with the names of the user's program put in, or code for what this program and device have. */
#ifndef HONE_ANALYZE_TRACED_FIX_H
#define HONE_ANALYZE_TRACED_FIX_H

#include "analyze/traced/study.h"

struct fix_facts fix_facts_of(const struct study *s);
/* The best form that the user's optimizer has on the device: one op for all tensors, ops over lists of them, no other than it is.
 * OWN: it is not of torch.optim, and its author may write any. */
enum optimizer_form { OPTIMIZER_AS_IT_IS, OPTIMIZER_FOREACH, OPTIMIZER_FUSED, OPTIMIZER_OWN };
enum optimizer_form fix_optimizer_form(const struct fix_facts *f);
/* PyTorch code for a rule; every one compiles as Python. Texts live in the arena or for ever. */
const char *fix_text(struct arena *a, const char *rule, const struct fix_facts *f);

#endif
