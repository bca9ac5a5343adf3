/* Text that the model writes while it learns: some tokens from every checkpoint, into samples.jsonl. Training waits meanwhile, as it does for an
 * evaluation, and nothing of the run is touched: the text comes from the checkpoint. */
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"
#include "core/clock.h"
#include "train/loop_int.h"

enum { SAMPLE_BYTES = 1 << 16 };
static const double MOST_S = 10;        /* a large model need not finish its sentence */

struct sample {
    char *text;
    size_t size;
    const volatile sig_atomic_t *stop;  /* of the run */
    double until;
    volatile sig_atomic_t enough;
};

static void emit(void *context, int64_t sample, const char *text, size_t length)
{
    struct sample *s = context;
    (void)sample;
    for (size_t i = 0; i < length && s->size + 1 < SAMPLE_BYTES; i++)
        s->text[s->size++] = text[i] ? text[i] : ' ';
    s->enough = s->size + 1 == SAMPLE_BYTES || clock_s() > s->until || (s->stop && *s->stop);
}

enum status loop_open_samples(struct loop *l, int64_t resumed_step, struct error *err)
{
    int64_t ignored;
    if (!l->options->sample_tokens)
        return OK;
    return lines_open(&l->samples, l->options->out, "samples.jsonl", resumed_step, false, &ignored, err);
}

static void give_up(struct loop *l, const struct error *why)
{
    char text[sizeof why->text + 64];
    snprintf(text, sizeof text, "no more samples are made: %s", why->text);
    loop_warn(l, text);
    lines_close(&l->samples, NULL);
}

static json_t *line(int64_t step, const char *text)
{
    char *good = text_utf8(text);
    json_t *j = json_pack("{s:I, s:s}", "step", (json_int_t)step, "text", good);
    free(good);
    return j;
}

/* The same seed for every sample: what differs is what the model has learned. */
void loop_sample(struct loop *l)
{
    struct sample s = {.text = l->samples.file ? calloc(1, SAMPLE_BYTES) : NULL, .stop = l->options->stop, .until = clock_s() + MOST_S};
    const struct generate_options how = {.prompt = "", .tokens = l->options->sample_tokens, .temperature = 0.8, .seed = 1, .stop = &s.enough,
                                         .on_text = emit, .context = &s};
    struct generate_result made;
    struct error why;
    if (!s.text || loop_stopped(l)) {
        free(s.text);
        return;
    }
    if (generate_run(l->checkpoint, &how, &made, &why) != OK) {
        give_up(l, &why);
    } else {
        lines_write(&l->samples, line(l->step, s.text));
        if (l->watch->on_sample)
            l->watch->on_sample(l->watch->context, l->step, s.text);
    }
    generate_release(&made);
    free(s.text);
}
