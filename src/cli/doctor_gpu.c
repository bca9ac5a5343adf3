/* What `hone doctor` says of GPUs: the one that is there, how it is and what it reaches; and what would fit on others. */
#include <math.h>

#include "cli/doctor.h"
#include "core/gpu.h"
#include "core/json_whole.h"
#include "lib/peaks.h"
#include "train/train.h"

static const int sizes_gb[GPU_SIZES] = {12, 16, 24, 80};
static const double SHARE = 0.9;            /* of a GPU's memory: CUDA itself, cuBLAS, scratch, also that of ops side by side, take the rest */

void doctor_read_gpu(struct doctor_gpu *g, bool anew)
{
    const struct config c = {.device = DEVICE_CUDA};
    struct error ignored;
    char machine[160];
    *g = (struct doctor_gpu){0};
    if (cuda_device_read(&g->device, &g->none) != OK)
        return;
    cuda_fingerprint(&g->device, machine);
    if (anew)
        peaks_forget(machine, NULL);        /* a cache that cannot be written holds nothing either */
    g->has_state = gpu_look(&g->state, g->device.address, &g->no_state) == OK;      /* before it is made to work */
    g->has_peaks = known_peaks(&c, &g->peaks, NULL, &ignored) == OK && peaks_has(&g->peaks, NUMBERS_F32);
}

/* ---- text ---- */

static void print_state(const struct doctor_gpu *g)
{
    const struct gpu_state *s = &g->state;
    char why[SLOWED_WORDS];
    if (!g->has_state) {
        printf("           %s\n", g->no_state.text);
        return;
    }
    printf("           now: SM clock %.0f of %.0f MHz, %.0f of %.0f W, %.0f °C, busy %.0f %%", s->sm_mhz, s->sm_most_mhz, s->watts, s->watts_most,
           s->celsius, s->busy_percent);
    if (s->slowed)
        printf(", clock held down by %s", gpu_slowed_words(s->slowed, why));
    putchar('\n');
}

static void print_peaks(const struct peaks *p)
{
    fputs("           products", stdout);
    for (enum numbers n = 0; n < NUMBERS; n++)
        if (peaks_has(p, n))
            printf("%s %s %.1f TFLOP/s", n ? "," : "", numbers_name(n), p->gflops[n] / 1e3);
    printf("\n           copies L2 %.0f GB/s, memory %.0f GB/s (read and written); from the host %.1f GB/s pinned, %.1f GB/s pageable\n",
           p->copy_gb_per_s[1], p->copy_gb_per_s[3], p->gpu.pinned_gb_per_s, p->gpu.pageable_gb_per_s);
    printf("           a kernel that does nothing: %.2f us in a graph, %.2f us started by the host\n", p->gpu.replayed_us,
           p->gpu.launched_us);
}

void doctor_print_gpu(const struct doctor_gpu *g)
{
    char total[32], free_now[32], who[160];
    if (g->none.status != OK) {
        printf("gpu        %s\n", g->none.text);
        return;
    }
    human_bytes(g->device.memory_bytes, total);
    human_bytes(g->device.free_bytes, free_now);
    cuda_fingerprint(&g->device, who);
    printf("gpu        %s, driver for %d.%d, %s, %s available; used with device: cuda\n", who, g->device.driver / 1000,
           g->device.driver % 1000 / 10, total, free_now);
    print_state(g);
    if (g->has_peaks)
        print_peaks(&g->peaks);
}

/* ---- the largest batch ---- */

enum status doctor_fit(struct doctor_fit *f, const struct config *c, struct error *err)
{
    double bytes[GPU_SIZES];
    enum status st = OK;
    *f = (struct doctor_fit){0};
    for (int i = 0; i < GPU_SIZES; i++) {
        bytes[i] = SHARE * sizes_gb[i] * 1e9;
        f->size[i].gb = sizes_gb[i];
        f->size[i].narrow = c->optimize.precision == PRECISION_BF16 || c->optimize.precision == PRECISION_F16;
    }
    for (int s = 0; s < SAVERS && st == OK; s++) {
        int64_t most[GPU_SIZES];
        st = train_largest_batches(c, s, bytes, most, GPU_SIZES, err);
        for (int i = 0; i < GPU_SIZES; i++)
            f->size[i].most[s] = most[i];
    }
    return st;
}

json_t *doctor_fit_json(const struct doctor_fit *f)
{
    json_t *list = json_array();
    for (int i = 0; i < GPU_SIZES; i++) {
        const int64_t *most = f->size[i].most;
        json_array_append_new(list, json_pack("{s:i, s:I, s:I, s:I, s:I}", "gpu_gb", f->size[i].gb, "batch", (json_int_t)most[0], "with_bf16",
                                              (json_int_t)most[SAVE_BF16], "with_recompute", (json_int_t)most[SAVE_RECOMPUTE], "with_both",
                                              (json_int_t)most[SAVE_BF16 | SAVE_RECOMPUTE]));
    }
    return list;
}

/* ---- JSON ---- */

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *peaks_json(const struct peaks *p)
{
    json_t *j = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "l2_gb_per_s", p->copy_gb_per_s[1], "copy_gb_per_s", p->copy_gb_per_s[3],
                          "replayed_us", p->gpu.replayed_us, "launched_us", p->gpu.launched_us, "pinned_gb_per_s", p->gpu.pinned_gb_per_s,
                          "pageable_gb_per_s", p->gpu.pageable_gb_per_s);
    for (enum numbers n = 0; n < NUMBERS && j; n++) {
        char key[24];
        snprintf(key, sizeof key, "%s_gflops", numbers_name(n));
        json_object_set_new(j, key, number(p->gflops[n]));
    }
    return j;
}

static json_t *state_json(const struct gpu_state *s)
{
    char why[SLOWED_WORDS];
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "sm_mhz", number(s->sm_mhz), "sm_most_mhz", number(s->sm_most_mhz), "watts",
                     number(s->watts), "watts_most", number(s->watts_most), "celsius", number(s->celsius), "busy_percent",
                     number(s->busy_percent), "used_bytes", json_whole(s->used_bytes), "held_down_by", gpu_slowed_words(s->slowed, why));
}

json_t *doctor_gpu_json(const struct doctor_gpu *g)
{
    if (g->none.status != OK)
        return json_null();
    return json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:o}", "name", json_text(g->device.name), "compute_capability",
                     10 * g->device.major + g->device.minor, "driver", g->device.driver, "memory_bytes", json_whole(g->device.memory_bytes),
                     "available_bytes", json_whole(g->device.free_bytes), "peaks", g->has_peaks ? peaks_json(&g->peaks) : json_null(), "now",
                     g->has_state ? state_json(&g->state) : json_null());
}
