/* Text from a checkpoint: the forward program over a window of tokens, one token at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rng.h"
#include "train/train_int.h"

typedef void emit_fn(void *context, const char *text, size_t length);

struct generator {
    struct trained model;
    int32_t *window, *segments;     /* (seq): the tokens that the model sees, padded at the end */
    float *logits;                  /* (seq, vocab) */
    int64_t length;                 /* tokens in the window */
};

/* The model is as large as it was trained: no setting makes it smaller. */
static enum status build(struct generator *g, struct error *err)
{
    const struct config_model *m = &g->model.config.model;
    struct program *p;
    enum status st = forward_program(&p, &g->model.config, (struct model_options){.batch = 1}, NULL, err);
    if (st == OK)
        st = trained_build(&g->model, p, err);
    if (st != OK)
        return st;
    g->window = xcalloc((size_t)m->seq, sizeof *g->window);
    g->segments = xcalloc((size_t)m->seq, sizeof *g->segments);
    g->logits = malloc((size_t)(m->seq * m->vocab) * sizeof *g->logits);
    if (!g->logits)
        return trained_refuse(&g->model, error_no_memory(err, "logits", (uint64_t)(m->seq * m->vocab * 4)), err);
    return OK;
}

static void push(struct generator *g, int32_t id)
{
    const int64_t seq = g->model.config.model.seq;
    if (g->length == seq) {
        g->length = seq - 1;
        for (int64_t i = 0; i + 1 < seq; i++)
            g->window[i] = g->window[i + 1];
    }
    g->window[g->length++] = id;
}

static enum status encode_prompt(struct generator *g, const char *prompt, int32_t *ids, size_t *n, struct error *err)
{
    struct error why;
    const enum status st = tokenizer_encode(&g->model.tokenizer, prompt, strlen(prompt), ids, n, &why);
    if (st != OK)
        return error_set(err, st, "--prompt: %.900s", why.text);
    for (size_t i = 0; i < *n; i++)
        if (ids[i] < 0 || ids[i] >= g->model.config.model.vocab)
            return error_set(err, BAD_INPUT, "--prompt: token %d is outside the vocabulary of %lld", ids[i],
                             (long long)g->model.config.model.vocab);
    return OK;
}

static void tell_last(struct generator *g, emit_fn *emit, void *context)
{
    char text[TOKEN_TEXT_MAX];
    const size_t length = tokenizer_decode(&g->model.tokenizer, g->window[g->length - 1], text);
    emit(context, text, length);
}

static enum status push_prompt(struct generator *g, const char *prompt, emit_fn *emit, void *context, struct error *err)
{
    int32_t *ids = xcalloc(strlen(prompt) + 2, sizeof *ids);
    size_t n = 0;
    const enum status st = encode_prompt(g, prompt, ids, &n, err);
    for (size_t i = 0; st == OK && i < n; i++) {
        push(g, ids[i]);
        tell_last(g, emit, context);
    }
    free(ids);
    return st;
}

/* Draws from softmax(row / temperature) over the ids that the tokenizer knows. */
static int32_t draw(const struct generator *g, const float *row, double temperature, double u)
{
    const int32_t n = g->model.tokenizer.n < g->model.config.model.vocab ? g->model.tokenizer.n : (int32_t)g->model.config.model.vocab;
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (row[i] > row[best])
            best = i;
    if (temperature <= 0)
        return best;
    double sum = 0, at = 0;
    for (int32_t i = 0; i < n; i++)
        sum += exp((row[i] - row[best]) / temperature);
    for (int32_t i = 0; i < n; i++) {
        at += exp((row[i] - row[best]) / temperature);
        if (u * sum < at)
            return i;
    }
    return best;
}

/* As in training. */
static void write_segments(struct generator *g, value_id to)
{
    const struct config_model *m = &g->model.config.model;
    if (to == NO_VALUE)
        return;
    data_segments(g->segments, g->window, g->length, m->seq, m->segments, tokenizer_newline(&g->model.tokenizer));
    exec_write(g->model.exec, to, g->segments);
}

/* A row of all positions, as segments has room for. */
static void write_positions(struct generator *g, value_id to)
{
    if (to == NO_VALUE)
        return;
    for (int64_t i = 0; i < g->model.config.model.seq; i++)
        g->segments[i] = (int32_t)i;
    exec_write(g->model.exec, to, g->segments);
}

static enum status next_token(struct generator *g, const struct generate_options *o, int64_t index, int32_t *token,
                              struct error *err)
{
    const struct program *p = exec_program(g->model.exec);
    exec_write(g->model.exec, p->tokens, g->window);
    write_positions(g, p->positions);
    write_segments(g, p->segments);
    exec_run(g->model.exec, PHASE_DATA, PHASE_FORWARD);
    exec_read(g->model.exec, p->logits, g->logits);
    const float *row = g->logits + (g->length - 1) * g->model.config.model.vocab;
    for (int64_t i = 0; i < g->model.config.model.vocab; i++)
        if (!isfinite(row[i]))
            return error_set(err, BAD_INPUT, "'%s': the model's output for token %lld is %g, so its weights are not those of a "
                             "model that trained well", g->model.checkpoint.path, (long long)i, row[i]);
    *token = draw(g, row, o->temperature, rng_double(o->seed, 0, (uint64_t)index));
    return OK;
}

static void release(struct generator *g)
{
    trained_release(&g->model);
    free(g->window);
    free(g->segments);
    free(g->logits);
}

enum status generate_run(const char *checkpoint, const struct generate_options *options, emit_fn *emit, void *context,
                         struct error *err)
{
    struct generator g = {0};
    enum status st = trained_load(&g.model, checkpoint, NULL, 0, options->device, err);
    if (st == OK && g.model.config.model.arch == ARCH_REGIONS)
        st = error_set(err, BAD_INPUT, "'%s' is a model of arch regions, which writes no text; hone eval tells its loss", checkpoint);
    if (st == OK)
        st = build(&g, err);
    if (st == OK)
        st = push_prompt(&g, options->prompt, emit, context, err);
    if (st == OK && g.length == 0)
        push(&g, 0);                        /* an empty prompt: start from the first token of the vocabulary */
    for (int64_t i = 0; st == OK && i < options->tokens && !(options->stop && *options->stop); i++) {
        int32_t token = 0;
        st = next_token(&g, options, i, &token, err);
        if (st != OK)
            break;
        push(&g, token);
        tell_last(&g, emit, context);
    }
    release(&g);
    return st;
}
