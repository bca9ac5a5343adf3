/* The measured ceilings of this machine: recalled, or measured now and remembered; and measured again where a step proved them wrong. */
#include "cli/cli.h"
#include "ops/cpu/cpu.h"
#include "train/train.h"

static void measure_on(struct backend *b, const struct cpu_machine *m, struct peaks *out)
{
    cpu_measure_peaks(b, m, out);
    peaks_remember(out, NULL);              /* no harm if it cannot be written */
}

enum status known_peaks(const struct config *c, struct peaks *out, bool *measured, struct error *err)
{
    struct cpu_machine m;
    struct backend *b;
    const enum status st = train_open_backend(&b, c, err);
    if (st != OK)
        return st;
    cpu_machine_read(&m);
    const bool known = peaks_recall(out, m.fingerprint, b->lanes);
    if (!known) {
        if (stream_is_terminal(stderr))
            fprintf(stderr, "measuring the peaks of this machine on %d threads, once\n", b->lanes);
        measure_on(b, &m, out);
    }
    if (measured)
        *measured = !known;
    b->free(b);
    return OK;
}

void measure_peaks_again(void *config, struct peaks *best)
{
    struct cpu_machine m;
    struct backend *b;
    struct peaks again;
    if (train_open_backend(&b, config, NULL) != OK)
        return;
    cpu_machine_read(&m);
    if (stream_is_terminal(stderr))
        fprintf(stderr, "measuring the peaks of this machine on %d threads again, behind the steps\n", b->lanes);
    measure_on(b, &m, &again);
    peaks_keep_best(best, &again);
    b->free(b);
}
