/* What an epoch was: its loss, its time, its speed, and a verdict on that speed. The first is held against the machine's peak, where
 * that is known, and later ones against the first. */
#include <math.h>

#include "ops/cpu/cpu.h"
#include "ops/cuda/cuda.h"
#include "train/loop_int.h"

static const double WAITS = 0.10;           /* of the time: what an epoch may wait for its data without a word */
static const double APART = 0.10;           /* of the speed: less is no difference between two epochs */

/* As in reports: bands of MFU. */
static const char *band_word(double mfu_percent)
{
    return mfu_percent < 20 ? "low" : mfu_percent < 40 ? "fair" : mfu_percent < 60 ? "good" : "high";
}

void epoch_judge(struct train_epoch *e)
{
    const double change = e->samples_per_s / e->first_samples_per_s - 1;
    if (e->data_wait_share > WAITS) {
        e->verdict = "waits for data";
        snprintf(e->words, sizeof e->words, "%.0f %% of the time went by without a batch; try more data.workers or data.prefetch",
                 100 * e->data_wait_share);
    } else if (isfinite(change)) {
        e->verdict = change < -APART ? "slower" : change > APART ? "faster" : "steady";
        snprintf(e->words, sizeof e->words, "%.2f times the speed of the first epoch", 1 + change);
    } else if (isfinite(e->mfu_percent)) {
        e->verdict = band_word(e->mfu_percent);
        snprintf(e->words, sizeof e->words, "MFU %.1f %% of the measured peak", e->mfu_percent);
    } else {
        e->verdict = "first";
        snprintf(e->words, sizeof e->words, "later epochs are held against it; hone doctor measures the peak");
    }
}

/* Peaks that are remembered: a run does not stop to measure them. */
static bool recall_peaks(const struct model_run *r, struct peaks *out)
{
    struct cpu_machine m;
    struct cuda_device d;
    char machine[160];
    if (r->config.device != DEVICE_CUDA) {
        cpu_machine_read(&m);
        return peaks_recall(out, m.fingerprint, r->backend->lanes);
    }
    if (cuda_device_read(&d, NULL) != OK)
        return false;
    cuda_fingerprint(&d, machine);
    return peaks_recall(out, machine, r->backend->lanes);
}

/* Not known of several ranks, nor where steps differ in length; nor where a peak is beaten, which proves it wrong. */
double epoch_mfu_percent(const struct model_run *r, int64_t samples_per_step, double step_us)
{
    struct peaks peaks;
    const struct program *p = exec_program(r->train);
    if (ranks_of(&r->config) || r->train_lengths.n || r->overflow || !recall_peaks(r, &peaks))
        return NAN;
    const double percent = products_peak_percent(program_peak(p, &peaks), model_step_flops(p, &r->config.model, samples_per_step), step_us);
    return percent > 0 && percent <= 100 ? percent : NAN;
}
