/* What the device can do, as far as the trace tells: its maker by the names of the runtime's calls, its units by its capability. */
#include <string.h>

#include "analyze/traced/study.h"

static bool begins(const char *name, const char *with) { return !strncmp(name, with, strlen(with)); }

static enum maker maker_of(const struct view *v)
{
    const struct trace *t = v->trace;
    const char *device = t->n_devices && t->devices[0].name >= 0 ? t->names[t->devices[0].name] : "";
    if (strstr(device, "NVIDIA") || strstr(device, "Tesla") || strstr(device, "GeForce"))
        return MAKER_NVIDIA;
    if (strstr(device, "AMD") || strstr(device, "Instinct") || strstr(device, "Radeon"))
        return MAKER_AMD;
    for (int32_t i = 0; i < v->n_host; i++) {
        if (view_event(v, i)->kind != EVENT_RUNTIME)
            continue;
        if (begins(view_name(v, i), "hip"))
            return MAKER_AMD;
        if (begins(view_name(v, i), "cuda") || begins(view_name(v, i), "cu"))
            return MAKER_NVIDIA;
    }
    return t->n_devices && t->devices[0].warp == 64 ? MAKER_AMD : v->n_host ? MAKER_OTHER : MAKER_UNKNOWN;
}

struct device_facts device_facts(const struct view *v)
{
    const struct trace *t = v->trace;
    struct device_facts f = {.maker = maker_of(v), .major = t->n_devices ? t->devices[0].major : 0,
                             .minor = t->n_devices ? t->devices[0].minor : 0};
    const bool known = f.major > 0;         /* without a word on it, a device is taken to be one of today */
    const bool nvidia = f.maker == MAKER_NVIDIA || f.maker == MAKER_UNKNOWN;
    f.half_units = f.maker == MAKER_AMD || (nvidia && (!known || f.major >= 7));
    f.bf16 = f.maker == MAKER_AMD || (nvidia && (!known || f.major >= 8));
    f.tf32 = nvidia && (!known || f.major >= 8);
    return f;
}
