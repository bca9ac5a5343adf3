/* What several looks at a GPU say together; see gpu.h. */
#include "core/gpu.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double FELL = 0.95;            /* of the clock at the first look; boost clocks move by a step or two anyway */

/* A line of a file: "Model: \t NVIDIA H200". */
static bool read_model(const char *path, char name[GPU_NAME])
{
    char line[256];
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, "Model:", 6))
            continue;
        const char *at = line + 6 + strspn(line + 6, " \t");
        snprintf(name, GPU_NAME, "%.*s", (int)strcspn(at, "\n"), at);
        found = *name != '\0';
    }
    if (f)
        fclose(f);
    return found;
}

bool gpu_listed(const char *folder, char name[GPU_NAME])
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char path[512];
    bool found = false;
    if (visible && (!*visible || *visible == '-'))
        return false;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%.200s/information", folder, e->d_name);
        found = e->d_name[0] != '.' && read_model(path, name);
    }
    if (d)
        closedir(d);
    return found;
}

const char *gpu_slowed_words(unsigned slowed, char out[SLOWED_WORDS])
{
    static const struct { unsigned bit; const char *words; } reasons[] = {
        {SLOWED_BY_POWER, "its power limit"}, {SLOWED_BY_HEAT, "heat"}, {SLOWED_BY_HARDWARE, "its hardware"}};
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (slowed & reasons[i].bit)
            used += (size_t)snprintf(out + used, SLOWED_WORDS - used, "%s%s", used ? " and " : "", reasons[i].words);
    return out;
}

void gpu_watch_begin(struct gpu_watch *w, const char *address)
{
    *w = (struct gpu_watch){.address = address, .sm_first_mhz = NAN, .sm_least_mhz = NAN, .sm_most_mhz = NAN, .celsius_most = NAN,
                            .used_most_bytes = NAN, .total_bytes = NAN};
}

/* fmin and fmax leave out what is no number. */
void gpu_watch_add(struct gpu_watch *w, const struct gpu_state *s)
{
    if (!w->looks++)
        w->sm_first_mhz = s->sm_mhz;
    w->sm_least_mhz = fmin(w->sm_least_mhz, s->sm_mhz);
    w->sm_most_mhz = fmax(w->sm_most_mhz, s->sm_mhz);
    w->celsius_most = fmax(w->celsius_most, s->celsius);
    w->used_most_bytes = fmax(w->used_most_bytes, s->used_bytes);
    w->total_bytes = fmax(w->total_bytes, s->total_bytes);
    w->slowed |= s->slowed;
    if (!isnan(s->watts)) {
        w->watts_sum += s->watts;
        w->watts_known++;
    }
    if (!isnan(s->busy_percent)) {
        w->busy_sum += s->busy_percent;
        w->busy_known++;
    }
}

struct gpu_state gpu_unknown(void)
{
    return (struct gpu_state){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0};
}

bool gpu_watch_look(struct gpu_watch *w, struct gpu_state *seen)
{
    struct gpu_state s;
    if (!w->address)
        return false;
    if (gpu_look(&s, w->address, NULL) != OK) {
        w->address = NULL;                  /* it will not be there at the next look either */
        return false;
    }
    gpu_watch_add(w, &s);
    if (seen)
        *seen = s;
    return true;
}

double gpu_watch_busy_percent(const struct gpu_watch *w) { return w->busy_known ? w->busy_sum / w->busy_known : NAN; }
double gpu_watch_watts(const struct gpu_watch *w) { return w->watts_known ? w->watts_sum / w->watts_known : NAN; }

bool gpu_watch_warning(const struct gpu_watch *w, char out[WATCH_WORDS])
{
    char why[SLOWED_WORDS], hot[32] = "";
    const bool fell = w->looks > 1 && w->sm_least_mhz < FELL * w->sm_first_mhz;
    if (!w->looks || (!fell && !w->slowed))
        return false;
    if (isfinite(w->celsius_most))
        snprintf(hot, sizeof hot, " at up to %.0f °C", w->celsius_most);
    if (fell && w->slowed)
        snprintf(out, WATCH_WORDS, "The clock of the GPU fell from %.0f to %.0f MHz while this was measured%s, held down by %s",
                 w->sm_first_mhz, w->sm_least_mhz, hot, gpu_slowed_words(w->slowed, why));
    else if (fell)
        snprintf(out, WATCH_WORDS, "The clock of the GPU fell from %.0f to %.0f MHz while this was measured%s", w->sm_first_mhz,
                 w->sm_least_mhz, hot);
    else
        snprintf(out, WATCH_WORDS, "The clock of the GPU was held down by %s while this was measured (%.0f MHz at the least)%s",
                 gpu_slowed_words(w->slowed, why), w->sm_least_mhz, hot);
    return true;
}
