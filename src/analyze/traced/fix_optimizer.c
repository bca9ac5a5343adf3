/* What PyTorch's optimizers can, and code that has the user's own. */
#include "analyze/traced/fix_int.h"

#include <string.h>

enum fused { NOWHERE, ON_CPUS, ANYWHERE };
enum captured { NOT_CAPTURED, CAPTURED, CAPTURABLE };       /* whether a graph may hold its step: as it is, or with capturable=True */

static const struct { const char *name; enum fused fused; bool foreach; enum captured captured; } optimizers[] = {
    {"AdamW", ANYWHERE, true, CAPTURABLE},      {"Adam", ANYWHERE, true, CAPTURABLE},       {"SGD", ANYWHERE, true, CAPTURED},
    {"Adagrad", ON_CPUS, true, NOT_CAPTURED},   {"RMSprop", NOWHERE, true, CAPTURABLE},     {"NAdam", NOWHERE, true, CAPTURABLE},
    {"RAdam", NOWHERE, true, CAPTURABLE},       {"Adamax", NOWHERE, true, CAPTURABLE},      {"Adadelta", NOWHERE, true, CAPTURABLE},
    {"ASGD", NOWHERE, true, CAPTURABLE},        {"Rprop", NOWHERE, true, CAPTURABLE},       {"Adafactor", NOWHERE, true, NOT_CAPTURED},
    {"Muon", NOWHERE, false, NOT_CAPTURED},     {"LBFGS", NOWHERE, false, NOT_CAPTURED},    {"SparseAdam", NOWHERE, false, NOT_CAPTURED},
};

static int optimizer_index(const char *name)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (!strcmp(optimizers[i].name, name))
            return (int)i;
    return -1;
}

enum optimizer_form fix_optimizer_form(const struct fix_facts *f)
{
    if (!f->optimizer)
        return OPTIMIZER_FUSED;             /* not named: as most do, AdamW */
    const int i = optimizer_index(f->optimizer);
    if (i < 0)
        return OPTIMIZER_OWN;
    if (optimizers[i].fused == ANYWHERE || (fix_is_for_cpu(f) && optimizers[i].fused == ON_CPUS))
        return OPTIMIZER_FUSED;
    return optimizers[i].foreach ? OPTIMIZER_FOREACH : OPTIMIZER_AS_IT_IS;
}

/* What is not of torch.optim has no switch, and another algorithm is no fix: the user's own stays. */
static const char *own_optimizer_fix(struct arena *a, const struct fix_facts *f)
{
    return arena_printf(a, "# %.60s has no switch for it: let its step go over lists of tensors (torch._foreach_mul_, torch._foreach_add_, ...),\n"
                        "# with the same arithmetic, or compile it as it is:\n"
                        "@torch.compile(fullgraph=False)\n"
                        "def update():\n"
                        "    optimizer.step()", f->optimizer);
}

const char *fix_optimizer(struct arena *a, const struct fix_facts *f)
{
    const enum optimizer_form form = fix_optimizer_form(f);
    const char *text = form == OPTIMIZER_OWN || form == OPTIMIZER_AS_IT_IS ? own_optimizer_fix(a, f) : rule_text_find("unfused-optimizer")->fix_pytorch;
    if (form == OPTIMIZER_FUSED && fix_is_for_cpu(f))
        text = fix_replaced(a, text, "   # or foreach=True", "");           /* lists of tensors save launches: on a CPU they win nothing */
    return f->clips ? arena_printf(a, "%s\ntorch.nn.utils.clip_grad_norm_(model.parameters(), max_norm, foreach=True)", text) : text;
}

/* A step by hand is captured with its optimizer: of one that a graph cannot hold the model alone is left. */
static const char *without_capture(struct arena *a, const char *text)
{
    const char *by_hand = strstr(text, "\n# or, instead, capture");
    return by_hand ? arena_printf(a, "%.*s", (int)(by_hand - text), text) : text;
}

const char *fix_with_optimizer(struct arena *a, const char *text, const struct fix_facts *f)
{
    const char *name = f->optimizer;
    const enum optimizer_form form = fix_optimizer_form(f);
    if (!name)
        return text;
    const int i = optimizer_index(name);
    if (i < 0 || optimizers[i].captured == NOT_CAPTURED)
        text = without_capture(a, text);
    else if (optimizers[i].captured == CAPTURED)
        text = fix_replaced(a, text, ", capturable=True", "");
    if (form == OPTIMIZER_OWN || form == OPTIMIZER_AS_IT_IS)
        return fix_without_lines(a, text, "torch.optim.AdamW(");
    const char *why = optimizers[i].fused == ON_CPUS ? "foreach=True)   # its fused form is for CPUs" : "foreach=True)   # it has no fused form";
    if (form == OPTIMIZER_FOREACH)
        text = fix_replaced(a, fix_replaced(a, text, "fused=True)   # or foreach=True", why), "fused=True", "foreach=True");
    return fix_replaced(a, text, "torch.optim.AdamW(", arena_printf(a, "torch.optim.%s(", name));
}
