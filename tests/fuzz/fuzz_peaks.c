/* Any bytes as the peaks' cache file: what is believed is sound, and adding an entry to it gives a cache in which the
 * new entry is found, raised to what was believed of it, and others are still there; forgetting a machine leaves nothing of it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/peaks_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void require_sound(const struct peaks *p)
{
    require(p->threads == 4 && strcmp(p->machine, "machine") == 0);
    require(isfinite(p->gflops[NUMBERS_F32]) && p->gflops[NUMBERS_F32] > 0 && isfinite(p->gflops[NUMBERS_BF16]) && p->gflops[NUMBERS_BF16] >= 0 &&
            isfinite(p->gpu.launched_us) && p->gpu.launched_us >= 0);
    for (double bytes = 1; bytes < 1e12; bytes *= 8) {
        const double gb_per_s = peaks_bandwidth(p, bytes);
        require(isfinite(gb_per_s) && gb_per_s > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct peaks mine = {.threads = 2, .gflops[NUMBERS_F32] = 1.5, .copy_gb_per_s = {4, 3, 0, 1},
                               .cache_bytes = {1, 2, 0, 4}, .machine = "machine"};
    struct peaks found, again, known;
    const bool believed = peaks_parse(&found, (const char *)data, size, "machine", 4);
    if (believed)
        require_sound(&found);

    char *text = peaks_print(&mine, (const char *)data, size);
    require(text != NULL);
    const bool had = peaks_parse(&known, (const char *)data, size, "machine", 2);
    require(peaks_parse(&again, text, strlen(text), "machine", 2) && again.gflops[NUMBERS_F32] == (had ? fmax(known.gflops[NUMBERS_F32], 1.5) : 1.5));
    if (believed && peaks_parse(&again, text, strlen(text), "machine", 4))
        require(again.gflops[NUMBERS_F32] == found.gflops[NUMBERS_F32] && again.gflops[NUMBERS_BF16] == found.gflops[NUMBERS_BF16] &&
                again.copy_gb_per_s[3] == found.copy_gb_per_s[3]);
    free(text);

    text = peaks_print_without("machine", (const char *)data, size);
    require(text != NULL && !peaks_parse(&again, text, strlen(text), "machine", 4) && !peaks_parse(&again, text, strlen(text), "machine", 2));
    free(text);
    return 0;
}
