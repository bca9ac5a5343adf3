/* What devices can do by their names: products per second without sparsity and memory bandwidth, as their makers say. */
#include <ctype.h>
#include <string.h>

#include "analyze/traced/study.h"

/* The first name whose words the device's has counts: the longer ones stand before the shorter, "L40" is no word of "L40S", and a variant whose peaks are
 * not known has none rather than those of another. TFLOP/s of f32, TF32 and 16 bits; GB/s. */
static const struct { const char *name; struct device_peak peak; } known[] = {
    {"GB200", {{80, 1250, 2500}, 8000}},          {"B200", {{75, 1100, 2250}, 8000}},           {"GH200", {{67, 495, 989}, 4000}},
    {"H200 NVL", {{60, 418, 835}, 4800}},         {"H200", {{67, 495, 989}, 4800}},             {"H100 PCIe", {{51, 378, 756}, 2000}},
    {"H100 NVL", {{60, 418, 835}, 3900}},         {"H100", {{67, 495, 989}, 3350}},             {"H800", {{67, 495, 989}, 3350}},
    {"H20", {{44, 74, 148}, 4000}},               {"A100-SXM4-40GB", {{19.5, 156, 312}, 1555}}, {"A100-PCIE-40GB", {{19.5, 156, 312}, 1555}},
    {"A100-PCIE-80GB", {{19.5, 156, 312}, 1935}}, {"A100 80GB PCIe", {{19.5, 156, 312}, 1935}}, {"A100", {{19.5, 156, 312}, 2039}},
    {"A800", {{19.5, 156, 312}, 2039}},           {"RTX A6000", {{38.7, 77.4, 154.8}, 768}},    {"A40", {{37.4, 74.8, 149.7}, 696}},
    {"A10G", {{35, 35, 70}, 600}},                {"A10", {{31.2, 62.5, 125}, 600}},            {"L40S", {{91.6, 183, 362}, 864}},
    {"L40", {{90.5, 90.5, 181}, 864}},            {"L4", {{30.3, 60, 121}, 300}},               {"V100S", {{16.4, 0, 130}, 1134}},
    {"V100-PCIE", {{14, 0, 112}, 900}},           {"V100", {{15.7, 0, 125}, 900}},              {"T4", {{8.1, 0, 65}, 320}},
    {"RTX 4090 Laptop", {{0}, 0}},                {"RTX 4090 D", {{0}, 0}},                     {"RTX 4090", {{82.6, 82.6, 165.2}, 1008}},
    {"RTX 3090 Ti", {{0}, 0}},                    {"RTX 3090", {{35.6, 35.6, 71}, 936}},        {"MI325X", {{163.4, 653.7, 1307}, 6000}},
    {"MI300X", {{163.4, 653.7, 1307}, 5300}},     {"MI250X", {{47.9, 0, 191.5}, 1638}},         {"MI250", {{45.3, 0, 181}, 1638}},
    {"MI210", {{45.3, 0, 181}, 1638}},
};

/* A word ends where neither a letter nor a digit follows. */
static bool has_words(const char *device, const char *words)
{
    const size_t n = strlen(words);
    for (const char *at = device; (at = strstr(at, words)); at++)
        if ((at == device || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

struct device_peak device_peak(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (name && has_words(name, known[i].name))
            return known[i].peak;
    return (struct device_peak){0};
}
