/* See peaks.h. */
#include "lib/peaks.h"

#include <stdio.h>

#include "ops/cpu/cpu.h"
#include "ops/cuda/cuda.h"
#include "train/train.h"

/* Who is asked: what is remembered goes by this name. */
static enum status identify(const struct config *c, struct cpu_machine *m, char machine[160], struct error *err)
{
    struct cuda_device d;
    if (c->device == DEVICE_CUDA) {
        const enum status st = cuda_device_read(&d, err);
        if (st == OK)
            cuda_fingerprint(&d, machine);
        return st;
    }
    cpu_machine_read(m);
    snprintf(machine, 160, "%s", m->fingerprint);
    return OK;
}

/* Where a GPU cannot be measured its peaks stay zero and are not remembered: what is relative to them is not known then. */
static enum status measure_on(struct backend *b, const struct config *c, const struct cpu_machine *m, const char *machine,
                              struct peaks *out, struct error *err)
{
    enum status st = OK;
    if (c->device == DEVICE_CUDA) {
        st = cuda_measure_peaks(b, out, err);
        snprintf(out->machine, sizeof out->machine, "%s", machine);
    } else
        cpu_measure_peaks(b, m, out);
    if (st == OK && peaks_has(out, NUMBERS_F32))
        peaks_remember(out, NULL);          /* no harm if it cannot be written */
    return st;
}

static peaks_watch_fn *watcher;

void known_peaks_watch(peaks_watch_fn *watch) { watcher = watch; }

static void tell(const struct backend *b, bool again)
{
    if (watcher)
        watcher(b, again);
}

enum status known_peaks(const struct config *c, struct peaks *out, bool *measured, struct error *err)
{
    struct cpu_machine m;
    struct backend *b;
    char machine[160];
    enum status st = train_open_backend(&b, c, err);
    if (st != OK)
        return st;
    st = identify(c, &m, machine, err);
    bool known = st == OK && peaks_recall(out, machine, b->lanes);
    if (known && c->device == DEVICE_CUDA && out->gpu.launched_us <= 0) {
        peaks_forget(machine, NULL);        /* older than some of the peaks that a GPU has */
        known = false;
    }
    if (st == OK && !known) {
        tell(b, false);
        st = measure_on(b, c, &m, machine, out, err);
        tell(NULL, false);
    }
    if (measured)
        *measured = !known;
    b->free(b);
    return st;
}

void measure_peaks_again(void *config, struct peaks *best)
{
    struct cpu_machine m;
    struct backend *b;
    struct peaks again;
    char machine[160];
    if (train_open_backend(&b, config, NULL) != OK)
        return;
    if (identify(config, &m, machine, NULL) == OK) {
        tell(b, true);
        if (measure_on(b, config, &m, machine, &again, NULL) == OK)
            peaks_keep_best(best, &again);
        tell(NULL, true);
    }
    b->free(b);
}
