/* Text token by token: a program for the tokens that samples begin with, and one for a new token of each. */
#include "train/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

enum status decoder_program(struct program **out, const struct config *c, int64_t samples, struct error *err)
{
    return generation_program(out, c, (struct model_options){.batch = samples, .samples = samples}, 1, err);
}

enum status decoder_init(struct decoder *d, const struct config *c, struct backend *b, struct exec *step, int64_t samples, int32_t newline,
                         struct error *err)
{
    const size_t seq = (size_t)c->model.seq, n = (size_t)samples, bytes = n * (size_t)c->model.vocab * sizeof *d->logits;
    *d = (struct decoder){.config = c, .backend = b, .step = step, .samples = samples, .newline = newline};
    d->windows = xcalloc(n * seq, sizeof *d->windows);
    d->row = xcalloc(n * seq, sizeof *d->row);
    d->segments = xcalloc(seq, sizeof *d->segments);
    d->logits = malloc(bytes);
    return d->logits ? OK : error_no_memory(err, "logits", bytes);
}

void decoder_release(struct decoder *d)
{
    exec_free(d->begin);
    free(d->windows);
    free(d->row);
    free(d->segments);
    free(d->logits);
    *d = (struct decoder){.begin = NULL};
}

static int64_t room_of(const struct decoder *d) { return d->config->model.seq; }
static int32_t *window_of(const struct decoder *d, int64_t sample) { return d->windows + sample * room_of(d); }

/* Writes places [first, first + n) of the windows of `batch` samples: tokens, where they stand, and their segments as in training. Of samples
 * that are done, which `tokens` (batch) says where it is given, there are none. */
static void write_places(struct decoder *d, struct exec *e, int64_t batch, int64_t first, int64_t n, const int32_t *tokens)
{
    const struct program *p = exec_program(e);
    const struct config_model *m = &d->config->model;
    for (int64_t b = 0; b < batch; b++)
        memcpy(d->row + b * n, window_of(d, b) + first, (size_t)n * sizeof *d->row);
    exec_write(e, p->tokens, d->row);
    for (int64_t i = 0; i < batch * n; i++)
        d->row[i] = tokens && tokens[i / n] < 0 ? -1 : (int32_t)(first + i % n);
    exec_write(e, p->positions, d->row);
    for (int64_t b = 0; p->segments != NO_VALUE && b < batch; b++) {
        data_segments(d->segments, window_of(d, b), d->length, m->seq, m->segments, d->newline);
        memcpy(d->row + b * n, d->segments + first, (size_t)n * sizeof *d->row);
    }
    if (p->segments != NO_VALUE)
        exec_write(e, p->segments, d->row);
}

static enum status open_begin(struct decoder *d, int64_t batch, int64_t n, struct error *err)
{
    struct program *p;
    if (d->begin && d->begin_batch == batch && d->begin_tokens == n)
        return OK;
    exec_free(d->begin);
    d->begin = NULL;
    enum status st = generation_program(&p, d->config, (struct model_options){.batch = batch, .samples = d->samples, .begins = true}, n, err);
    if (st != OK)
        return st;
    st = exec_new(&d->begin, p, d->backend, d->step, err);
    if (st != OK)
        program_free(p);
    d->begin_batch = batch;
    d->begin_tokens = n;
    return st;
}

/* Keeps what the first n tokens of the windows give; `batch` 1: they are the same in all samples. */
static enum status fill(struct decoder *d, int64_t batch, int64_t n, struct error *err)
{
    if (n < 1)
        return OK;
    const enum status st = open_begin(d, batch, n, err);
    if (st != OK)
        return st;
    write_places(d, d->begin, batch, 0, n, NULL);
    exec_run(d->begin, PHASE_DATA, PHASE_FORWARD);
    return exec_status(d->begin, err);
}

/* The last token of every window, whose others are kept. */
static enum status step(struct decoder *d, const int32_t *tokens, struct error *err)
{
    write_places(d, d->step, d->samples, d->length - 1, 1, tokens);
    exec_run(d->step, PHASE_DATA, PHASE_FORWARD);
    exec_read(d->step, exec_program(d->step)->logits, d->logits);
    return exec_status(d->step, err);
}

enum status decoder_begin(struct decoder *d, const int32_t *tokens, int64_t n, struct error *err)
{
    const int64_t seen = n < room_of(d) ? n : room_of(d);
    for (int64_t i = 0; i < d->samples; i++)
        memcpy(window_of(d, i), tokens + n - seen, (size_t)seen * sizeof *tokens);
    d->length = seen;
    const enum status st = fill(d, 1, seen - 1, err);
    return st == OK ? step(d, NULL, err) : st;
}

/* The newer half of the windows becomes all of them. */
static enum status forget_half(struct decoder *d, struct error *err)
{
    const int64_t half = room_of(d) / 2;
    for (int64_t i = 0; i < d->samples; i++)
        memmove(window_of(d, i), window_of(d, i) + d->length - half, (size_t)half * sizeof *d->windows);
    d->length = half;
    return fill(d, d->samples, half, err);
}

enum status decoder_push(struct decoder *d, const int32_t *tokens, struct error *err)
{
    const enum status st = d->length == room_of(d) ? forget_half(d, err) : OK;
    if (st != OK)
        return st;
    for (int64_t i = 0; i < d->samples; i++)
        window_of(d, i)[d->length] = tokens[i] < 0 ? 0 : tokens[i];
    d->length++;
    return step(d, tokens, err);
}
