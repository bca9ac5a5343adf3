/* The measured ceilings of a device: recalled, or measured now and remembered. */
#include "cli/cli.h"
#include "ops/cpu/cpu.h"
#include "ops/cuda/cuda.h"
#include "train/train.h"

static void measure_cpu(struct backend *b, struct peaks *out)
{
    struct cpu_machine m;
    cpu_machine_read(&m);
    if (peaks_recall(out, m.fingerprint, b->lanes))
        return;
    if (stream_is_terminal(stderr))
        fprintf(stderr, "measuring the peaks of this machine on %d threads, once\n", b->lanes);
    cpu_measure_peaks(b, &m, out);
    peaks_remember(out, NULL);          /* no harm if it cannot be written */
}

/* Where it cannot be measured the peaks stay zero: what is relative to them is not known then. */
static enum status measure_cuda(struct backend *b, struct peaks *out, struct error *err)
{
    struct cuda_device d;
    char machine[sizeof out->machine];
    enum status st = cuda_device_read(&d, err);
    if (st != OK)
        return st;
    cuda_fingerprint(&d, machine);
    if (peaks_recall(out, machine, b->lanes))
        return OK;
    st = cuda_measure_peaks(b, out, err);
    snprintf(out->machine, sizeof out->machine, "%s", machine);
    if (st == OK && out->gemm_gflops > 0)
        peaks_remember(out, NULL);
    return st;
}

enum status known_peaks(const struct config *c, struct peaks *out, struct error *err)
{
    struct backend *b;
    enum status st = train_open_backend(&b, c, err);
    if (st != OK)
        return st;
    if (c->device == DEVICE_CUDA)
        st = measure_cuda(b, out, err);
    else
        measure_cpu(b, out);
    b->free(b);
    return st;
}
