/* Text from a checkpoint: the forward program over a window of tokens, one token at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rng.h"
#include "train/train_int.h"

typedef void emit_fn(void *context, const char *text, size_t length);

struct generator {
    struct checkpoint checkpoint;
    struct config config;
    struct tokenizer tokenizer;
    struct backend *backend;
    struct exec *exec;
    int32_t *window, *segments;     /* (seq): the tokens that the model sees, padded at the end */
    float *logits;                  /* (seq, vocab) */
    int64_t length;                 /* tokens in the window */
};

static enum status read_tokenizer(struct generator *g, struct error *err)
{
    json_t *j = json_object_get(g->checkpoint.manifest, "tokenizer"), *points = json_object_get(j, "code_points");
    const char *kind = json_string_value(json_object_get(j, "kind"));
    const json_int_t n = json_integer_value(json_object_get(j, "vocab"));
    const enum tokenizer_kind k = !kind ? TOKENIZER_NONE : !strcmp(kind, "char") ? TOKENIZER_CHAR
                                : !strcmp(kind, "byte") ? TOKENIZER_BYTE : TOKENIZER_NONE;
    if (!kind || n < 1 || n > INT32_MAX || (k == TOKENIZER_CHAR && json_array_size(points) != (size_t)n))
        return error_set(err, BAD_INPUT, "'%s/manifest.json': the tokenizer is missing or damaged", g->checkpoint.path);
    uint32_t *list = k == TOKENIZER_CHAR ? xcalloc((size_t)n, sizeof *list) : NULL;
    for (size_t i = 0; list && i < (size_t)n; i++)
        list[i] = (uint32_t)json_integer_value(json_array_get(points, i));
    const enum status st = tokenizer_init(&g->tokenizer, k, list, (int32_t)n, err);
    free(list);
    return st;
}

static enum status choose_device(struct config *c, const char *name, struct error *err)
{
    if (strcmp(name, "cpu") && strcmp(name, "cuda"))
        return error_set(err, BAD_INPUT, "--device is '%.64s'; choose cpu or cuda", name);
    c->device = strcmp(name, "cuda") ? DEVICE_CPU : DEVICE_CUDA;
    return OK;
}

static enum status read_config(struct generator *g, const char *device, struct error *err)
{
    const char *text = json_string_value(json_object_get(g->checkpoint.manifest, "config"));
    if (!text)
        return error_set(err, BAD_INPUT, "'%s/manifest.json' holds no config", g->checkpoint.path);
    const enum status st = config_parse_saved(&g->config, g->checkpoint.path, text, strlen(text), NULL, 0, err);
    return st == OK && device ? choose_device(&g->config, device, err) : st;
}

/* The model is as large as it was trained: no setting makes it smaller. */
static enum status refuse(const struct generator *g, enum status st, struct error *err)
{
    const size_t available = g->backend->available(g->backend);
    return err->no_memory && available != SIZE_MAX ? error_add(err, ", and %.0f MB are free", (double)available / 1e6) : st;
}

static enum status build(struct generator *g, struct error *err)
{
    struct program *p;
    enum status st = train_open_backend(&g->backend, &g->config, err);
    if (st == OK)
        st = forward_program(&p, &g->config, (struct model_options){.batch = 1}, NULL, err);
    if (st != OK)
        return st;
    st = exec_new(&g->exec, p, g->backend, NULL, err);
    if (st != OK) {
        program_free(p);
        return refuse(g, st, err);
    }
    g->window = xcalloc((size_t)g->config.model.seq, sizeof *g->window);
    g->segments = xcalloc((size_t)g->config.model.seq, sizeof *g->segments);
    g->logits = malloc((size_t)(g->config.model.seq * g->config.model.vocab) * sizeof *g->logits);
    if (!g->logits)
        return refuse(g, error_no_memory(err, "logits", (uint64_t)(g->config.model.seq * g->config.model.vocab * 4)), err);
    return state_load_tensors(g->exec, &g->checkpoint.weights, VALUE_PARAMETER, g->checkpoint.path, err);
}

static void push(struct generator *g, int32_t id)
{
    const int64_t seq = g->config.model.seq;
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
    const enum status st = tokenizer_encode(&g->tokenizer, prompt, strlen(prompt), ids, n, &why);
    if (st != OK)
        return error_set(err, st, "--prompt: %.900s", why.text);
    for (size_t i = 0; i < *n; i++)
        if (ids[i] < 0 || ids[i] >= g->config.model.vocab)
            return error_set(err, BAD_INPUT, "--prompt: token %d is outside the vocabulary of %lld", ids[i],
                             (long long)g->config.model.vocab);
    return OK;
}

static void tell_last(struct generator *g, emit_fn *emit, void *context)
{
    char text[16];
    const size_t length = tokenizer_decode(&g->tokenizer, g->window[g->length - 1], text);
    emit(context, text, length);
}

static enum status push_prompt(struct generator *g, const char *prompt, emit_fn *emit, void *context, struct error *err)
{
    int32_t *ids = xcalloc(strlen(prompt) + 1, sizeof *ids);
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
    const int32_t n = g->tokenizer.n < g->config.model.vocab ? g->tokenizer.n : (int32_t)g->config.model.vocab;
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
    const struct config_model *m = &g->config.model;
    if (to == NO_VALUE)
        return;
    data_segments(g->segments, g->window, g->length, m->seq, m->segments, tokenizer_newline(&g->tokenizer));
    exec_write(g->exec, to, g->segments);
}

static enum status next_token(struct generator *g, const struct generate_options *o, int64_t index, int32_t *token,
                              struct error *err)
{
    const struct program *p = exec_program(g->exec);
    exec_write(g->exec, p->tokens, g->window);
    write_segments(g, p->segments);
    exec_run(g->exec, PHASE_DATA, PHASE_FORWARD);
    exec_read(g->exec, p->logits, g->logits);
    const float *row = g->logits + (g->length - 1) * g->config.model.vocab;
    for (int64_t i = 0; i < g->config.model.vocab; i++)
        if (!isfinite(row[i]))
            return error_set(err, BAD_INPUT, "'%s': the model's output for token %lld is %g, so its weights are not those of a "
                             "model that trained well", g->checkpoint.path, (long long)i, row[i]);
    *token = draw(g, row, o->temperature, rng_double(o->seed, 0, (uint64_t)index));
    return OK;
}

static void release(struct generator *g)
{
    exec_free(g->exec);
    if (g->backend)
        g->backend->free(g->backend);
    free(g->window);
    free(g->segments);
    free(g->logits);
    tokenizer_release(&g->tokenizer);
    checkpoint_release(&g->checkpoint);
}

enum status generate_run(const char *checkpoint, const struct generate_options *options, emit_fn *emit, void *context,
                         struct error *err)
{
    struct generator g = {0};
    enum status st = checkpoint_load(&g.checkpoint, checkpoint, err);
    if (st != OK)
        return st;
    st = read_config(&g, options->device, err);
    if (st == OK)
        st = read_tokenizer(&g, err);
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
