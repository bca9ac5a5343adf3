/* See profile.h. */
#include "lib/profile.h"

#include <stdlib.h>

#include "core/fs.h"
#include "core/notice.h"
#include "dist/dist.h"
#include "lib/peaks.h"
#include "ops/cpu/cpu.h"
#include "report/folder.h"
#include "report/report.h"

/* ---- measuring ---- */

/* Memory that can be had before the run takes its own; 0: unknown. */
static double available_bytes(const struct config *c)
{
    const size_t bytes = train_available_bytes(c);
    return bytes == SIZE_MAX ? 0 : (double)bytes;
}

/* Rank 0 measures them where they are not known, and the others wait. */
static enum status peaks_of_ranks(const struct config *c, struct dist *d, struct peaks *peaks, bool *new_peaks, struct error *err)
{
    *new_peaks = false;
    const enum status st = dist_agree(d, dist_rank(d) == 0 ? known_peaks(c, peaks, new_peaks, err) : OK, err);
    return st == OK ? dist_broadcast(d, peaks, sizeof *peaks, err) : st;
}

static void tell_of_data(const struct measured *m)
{
    const char *words;
    for (int i = 0; (words = measured_data_warning(m, i)); i++)
        notice_tell("%s", words);
}

enum status profile_measure(struct situation *out, const struct config *c, const struct profile_options *o, struct error *err)
{
    const bool leads = dist_rank(o->ranks) == 0, cuda = c->device == DEVICE_CUDA;
    struct config settled = *c;
    char words[THREADS_WORDS];              /* the report says how many */
    struct peaks peaks;
    bool new_peaks;
    train_settle_threads(&settled, words);
    enum status st = peaks_of_ranks(&settled, o->ranks, &peaks, &new_peaks, err);
    if (st != OK)
        return st;
    const struct situation_options options = {
        .steps = o->steps, .last = true, .peaks = &peaks, .peaks_are_new = new_peaks,
        .measure_peaks = leads ? measure_peaks_again : NULL, .peaks_context = &settled, .ask_passes = leads, .stop = o->stop,
        .progress = leads ? o->progress : NULL, .context = o->context,
        .device = cuda ? "cuda" : "cpu", .isa = cuda ? peaks.machine : cpu_isa_name(), .blas = cuda ? "cublas" : cpu_blas_name(),
        .usable_cores = cpu_usable_cores(), .available_bytes = available_bytes(c)};
    st = situation_measure(out, &settled, &options, err);
    if (st == OK && leads) {
        tell_of_data(&out->m);
        peaks_remember(&out->peaks, NULL);          /* what steps proved; no harm if it cannot be written */
    }
    return st;
}

/* ---- files ---- */

/* A page of Markdown under TensorBoard's tab for text. */
static enum status add_text(struct tensorboard *t, const char *tag, enum status (*write)(const struct profile *p, FILE *to, struct error *err),
                            const struct profile *p, struct error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return error_no_memory(err, "a page for TensorBoard", 1 << 16);
    enum status st = write(p, f, err);
    if (fclose(f) && st == OK)
        st = error_no_memory(err, "a page for TensorBoard", 1 << 16);
    if (st == OK)
        tensorboard_text(t, tag, 0, text);
    free(text);
    return st;
}

static enum status write_tensorboard(const struct profile *p, const char *folder, struct error *err)
{
    struct tensorboard *t;
    char path[1200];
    snprintf(path, sizeof path, "%s/tensorboard", folder);
    enum status st = fs_make_dirs(path, err);
    if (st == OK)
        st = tensorboard_open(&t, path, err);
    if (st != OK)
        return st;
    tensorboard_scalar(t, "step/ms", 0, p->step_us / 1e3);
    tensorboard_scalar(t, "step/samples_per_s", 0, p->samples_per_s);
    tensorboard_scalar(t, "step/tokens_per_s", 0, p->tokens_per_s);
    tensorboard_scalar(t, "step/mfu_percent", 0, p->mfu_percent);
    tensorboard_scalar(t, "step/loss", 0, p->loss);
    tensorboard_scalar(t, "memory/process_peak_mb", 0, p->rss_peak_bytes / 1e6);
    tensorboard_scalar(t, "memory/step_peak_mb", 0, p->peak_bytes / 1e6);
    for (int i = 0; i < p->n_ops; i++) {
        const struct profile_memory_point *m = &p->memory[i];
        const double alive = m->parameters + m->state + m->gradients + m->activations + m->inputs;
        tensorboard_scalar(t, "memory/alive_mb_by_op", i, alive / 1e6);
    }
    st = add_text(t, "report", report_write_markdown, p, err);
    if (st == OK)
        st = add_text(t, "operations", report_write_operations, p, err);
    struct error why;
    const enum status closed = tensorboard_close(t, st == OK ? err : &why);
    return st == OK ? closed : st;
}

static enum status write_all(const void *what, const char *folder, struct error *err)
{
    const struct profile *p = what;
    char path[1200];
    enum status st = report_write(p, folder, err);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    if (st == OK)
        st = trace_write_chrome(p->trace, path, p->name, err);
    return st == OK ? write_tensorboard(p, folder, err) : st;
}

enum status profile_publish(const struct situation *s, const char *folder, struct error *err)
{
    return report_folder_publish(folder, REPORT_PROFILE, write_all, &s->p, err);
}
