/* hone bench --batches: speed and memory against the batch size, as a table with a bar for every size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "core/delay.h"

enum { BAR = 24 };

static enum status refuse(const char *text, struct error *err)
{
    return error_set(err, BAD_INPUT, "--batches is '%s'; it takes auto, or up to %d sizes from 1 to 1048576 that rise, with commas between them: 8,16,32",
                     text, BATCH_POINTS);
}

enum status batch_list_parse(struct batch_list *out, const char *text, struct error *err)
{
    *out = (struct batch_list){.n = 0};
    if (!strcmp(text, "auto"))
        return OK;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        const long long size = strtoll(at, &end, 10);
        const bool digits = *at >= '0' && *at <= '9';
        if (!digits || errno || size < 1 || size > 1 << 20 || out->n == BATCH_POINTS || (out->n && size <= out->sizes[out->n - 1]))
            return refuse(text, err);
        out->sizes[out->n++] = size;
        at = end;
        if (!*at)
            return OK;
        if (*at != ',')
            return refuse(text, err);
    }
}

static void on_progress(void *context, int64_t batch, int done)
{
    char text[64];
    snprintf(text, sizeof text, "batch %lld, after %d other%s", (long long)batch, done, done == 1 ? "" : "s");
    progress_line(context, text);
}

/* ---- the table ---- */

static const char *color_of(enum batch_verdict v)
{
    return v == BATCH_SWEET_SPOT ? "green" : v == BATCH_DOES_NOT_FIT ? "red" : v == BATCH_TOO_SMALL ? "yellow" : "dim";
}

static void print_point(const struct batch_point *p, double best)
{
    const double part = p->fits && best > 0 ? p->samples_per_s / best : 0;
    printf("%8lld ", (long long)p->batch);
    if (p->fits)
        printf("%10.3f %11.1f %11.0f ", p->ms_per_step, p->samples_per_s, p->tokens_per_s);
    else
        printf("%10s %11s %11s ", "-", "-", "-");
    printf("%10.1f  ", p->planned_bytes / 1e6);
    for (int i = 0; i < BAR; i++)
        fputs(i < (int)(part * BAR + 0.5) ? "\u2588" : "\u00b7", stdout);
    printf(" %3.0f %%  %s%s%s%s\n", 100 * part, style(stdout, color_of(p->verdict)), batch_verdict_word(p->verdict), style(stdout, "off"),
           p->recompute ? ", with recompute" : "");
}

static const char *end_words(enum batch_end end)
{
    static const char *const words[] = {
        [BATCHES_LEVEL] = "larger ones were not tried: the last two won nothing", [BATCHES_NO_MEMORY] = "larger ones need more memory than there is",
        [BATCHES_SLOW] = "larger ones were not tried: a step takes too long for --seconds", [BATCHES_STOPPED] = "stopped before all were measured"};
    return words[end] ? words[end] : "";
}

static void print_sweep(const char *name, const struct batch_sweep *s, bool automatic)
{
    char spot[BATCH_WORDS], given[BATCH_WORDS], free_now[32] = "unknown";
    double best = 0;
    for (int i = 0; i < s->n; i++)
        best = s->points[i].samples_per_s > best ? s->points[i].samples_per_s : best;
    if (s->free_bytes > 0)
        human_bytes(s->free_bytes, free_now);
    printf("%s%s%s on %s, %d thread%s, memory available: %s\n", style(stdout, "bold"), shown(name), style(stdout, "off"), s->device, s->threads,
           s->threads == 1 ? "" : "s", free_now);
    printf("%8s %10s %11s %11s %10s  %s\n", "batch", "ms/step", "samples/s", "tokens/s", "plan MB", "samples/s, of the fastest");
    for (int i = 0; i < s->n; i++)
        print_point(&s->points[i], best);
    batch_sweep_words(s, spot, given);
    printf("%s%s%s\n", style(stdout, "bold"), spot, style(stdout, "off"));
    if (*given)
        puts(given);
    if ((automatic && s->end != BATCHES_GIVEN) || s->end == BATCHES_STOPPED)
        puts(end_words(s->end));
    if (s->noisy && !delay_is_much(s->delayed_share))      /* of which there is a warning of its own */
        printf("%swarning:%s this machine is busy: measure again when it is quiet; --seconds gives more time\n", style(stdout, "yellow"), style(stdout, "off"));
    if (s->spot >= 0 && !s->noisy && s->points[s->spot].batch > s->given)
        puts("a larger batch makes fewer updates of the same data, and changes how it learns: hone tune --larger-batch raises train.lr by a rule");
    fflush(stdout);
}

static void say_about(const struct batch_sweep *s)
{
    char warning[DELAY_WORDS];
    if (delay_warning(s->delayed_share, warning))
        fprintf(stderr, "%swarning:%s %s\n", style(stderr, "yellow"), style(stderr, "off"), warning);
    if (s->vocab_assumed)
        bench_say_vocab(s->vocab);
}

void bench_say_vocab(int64_t vocab)
{
    fprintf(stderr, "random tokens, %lld different ones: model.vocab is left to the data, which is not read here; a run has those of its data, and its steps another "
            "loss, memory and time. --set model.vocab=N times N of them\n", (long long)vocab);
}

enum status bench_batches(const struct config *c, struct batch_list *list, double seconds, const struct peaks *peaks, json_t *sweeps,
                          struct error *err)
{
    struct progress bar;
    struct batch_sweep s;
    progress_start(&bar, 0, 0);
    const struct batch_sweep_options o = {.batches = list->sizes, .n = list->n, .from = 1, .seconds = seconds, .peaks = peaks, .stop = &stop_requested,
                                          .progress = on_progress, .context = &bar};
    const enum status st = batch_sweep_run(&s, c, &o, err);
    progress_clear(&bar);
    if (st != OK)
        return st;
    list->none_fits |= s.spot < 0;
    if (!sweeps) {
        print_sweep(c->name, &s, list->n == 0);
        say_about(&s);
        return OK;
    }
    json_t *j = batch_sweep_json(&s);
    if (!j || json_object_set_new(j, "case", json_text(c->name)) || json_array_append_new(sweeps, j))
        return error_no_memory(err, "the sweep", 1 << 16);
    return OK;
}
