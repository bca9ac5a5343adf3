/* What the program uses already: compiled code and graphs. What is there is not advised again. */
#include <string.h>

#include "analyze/traced/study.h"

static const char *const compiled_words[] = {"CompiledFunction", "CompiledFxGraph", "Torch-Compiled Region", "triton_poi_", "triton_red_",
                                             "triton_per_", "triton_tem_", "inductor"};

bool name_is_compiled(const char *name)
{
    for (size_t i = 0; i < sizeof compiled_words / sizeof *compiled_words; i++)
        if (strstr(name, compiled_words[i]))
            return true;
    return false;
}

struct uses study_uses(const struct view *v)
{
    struct uses u = {0};
    double graph_ns = 0, all_ns = 0;
    for (int32_t i = 0; i < v->trace->n_names && !u.compiled; i++)
        u.compiled = name_is_compiled(v->trace->names[i]);
    for (int32_t d = 0; d < v->n_device; d++) {
        const int32_t launch = v->launch[d];
        const double ns = (double)view_event(v, v->device + d)->duration_ns;
        all_ns += ns;
        graph_ns += launch >= 0 && v->call_kinds[view_event(v, launch)->name] == CALL_GRAPH ? ns : 0;
    }
    u.graphs = all_ns > 0 ? graph_ns / all_ns : 0;
    return u;
}
