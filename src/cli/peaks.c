/* The measured ceilings of this machine: recalled, or measured now and remembered. */
#include "cli/cli.h"
#include "ops/cpu/cpu.h"
#include "train/train.h"

enum status known_peaks(const struct config *c, struct peaks *out, struct error *err)
{
    struct cpu_machine m;
    struct backend *b;
    const enum status st = train_open_backend(&b, c, err);
    if (st != OK)
        return st;
    cpu_machine_read(&m);
    if (!peaks_recall(out, m.fingerprint, b->lanes)) {
        if (stream_is_terminal(stderr))
            fprintf(stderr, "measuring the peaks of this machine on %d threads, once\n", b->lanes);
        cpu_measure_peaks(b, &m, out);
        peaks_remember(out, NULL);          /* no harm if it cannot be written */
    }
    b->free(b);
    return OK;
}
