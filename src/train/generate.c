/* Text from a checkpoint: samples that grow together, a token of each at a time, and are told one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/notice.h"
#include "core/rng.h"
#include "train/decoder.h"
#include "train/sample_text.h"
#include "train/sampler.h"

enum { TOGETHER = 8 };                  /* samples: what is kept of each takes memory, and more are made in turn */

/* A sample's text, and what of it was told. */
struct growing {
    struct sample_text text;
    bool opened;                        /* the prompt was */
    size_t told;
};

struct generator {
    const struct generate_options *options;
    struct generate_result *result;
    struct stop_texts stops;
    struct trained model;
    struct decoder decoder;
    struct sampler sampler;
    struct growing *growing;            /* (samples) */
    int64_t begun, turn;                /* samples that are under way or done; the first that is not told to its end */
};

/* ---- the model ---- */

static int32_t known_tokens(const struct generator *g)
{
    const int64_t vocab = g->model.config.model.vocab;
    return g->model.tokenizer.n < vocab ? g->model.tokenizer.n : (int32_t)vocab;
}

static enum status check_choice(const struct generator *g, struct error *err)
{
    const int64_t k = g->options->top_k, n = known_tokens(g);
    return k <= n ? OK : error_set(err, BAD_INPUT, "--top-k is %lld, and the vocabulary has %lld tokens; choose 1 to %lld", (long long)k, (long long)n,
                                   (long long)n);
}

static enum status refuse(const struct generator *g, enum status st, struct error *err)
{
    return st == OK ? OK : trained_refuse(&g->model, st, err);
}

/* The model is as large as it was trained: no setting makes it smaller. */
static enum status build(struct generator *g, struct error *err)
{
    const struct generate_options *o = g->options;
    const int64_t together = g->result->n < TOGETHER ? g->result->n : TOGETHER;
    struct program *p;
    enum status st = decoder_program(&p, &g->model.config, together, err);
    if (st == OK)
        st = trained_build(&g->model, p, err);
    if (st != OK)
        return st;
    sampler_init(&g->sampler, o->temperature, o->top_k, o->top_p > 0 ? o->top_p : 1, known_tokens(g));
    st = decoder_init(&g->decoder, &g->model.config, g->model.backend, g->model.exec, together, tokenizer_newline(&g->model.tokenizer), err);
    return refuse(g, st, err);
}

static enum status open_model(struct generator *g, const char *checkpoint, struct error *err)
{
    enum status st = trained_load(&g->model, checkpoint, NULL, 0, g->options->device, err);
    if (st == OK && g->model.config.model.arch == ARCH_REGIONS)
        st = error_set(err, BAD_INPUT, "'%s' is a model of arch regions, which writes no text; hone eval tells its loss", checkpoint);
    if (st == OK)
        st = check_choice(g, err);
    return st;
}

/* ---- the prompt ---- */

static enum status encode_prompt(struct generator *g, struct error *err)
{
    struct generate_result *r = g->result;
    const char *prompt = g->options->prompt;
    struct error why;
    size_t n = 0;
    r->prompt_tokens = xcalloc(2 * strlen(prompt) + 2, sizeof *r->prompt_tokens);
    const enum status st = tokenizer_encode(&g->model.tokenizer, prompt, strlen(prompt), r->prompt_tokens, &n, &why);
    if (st != OK)
        return error_set(err, st, "--prompt: %.900s", why.text);
    for (size_t i = 0; i < n; i++)
        if (r->prompt_tokens[i] < 0 || r->prompt_tokens[i] >= g->model.config.model.vocab)
            return error_set(err, BAD_INPUT, "--prompt: token %d is outside the vocabulary of %lld", r->prompt_tokens[i],
                             (long long)g->model.config.model.vocab);
    r->n_prompt = (int64_t)n;
    if (r->n_prompt > g->model.config.model.seq)
        notice_tell("the prompt has %zu tokens, and the model sees the last %lld of them (model.seq)", n, (long long)g->model.config.model.seq);
    return OK;
}

static void decode_prompt(struct generator *g)
{
    struct generate_result *r = g->result;
    struct sample_text all = {0};
    char text[TOKEN_TEXT_MAX];
    sample_text_add(&all, "", 0, &(struct stop_texts){NULL, 0});
    for (int64_t i = 0; i < r->n_prompt; i++)
        sample_text_add(&all, text, tokenizer_decode(&g->model.tokenizer, r->prompt_tokens[i], text), &(struct stop_texts){NULL, 0});
    if (all.bytes[0] == ' ' && !strcmp(all.bytes + 1, g->options->prompt))
        memmove(all.bytes, all.bytes + 1, strlen(all.bytes));          /* a space that the tokenizer put before it */
    r->prompt = all.bytes;
}

/* All samples that are made together see the prompt. */
static enum status begin(struct generator *g, struct error *err)
{
    const int32_t begin_id = tokenizer_begin(&g->model.tokenizer), empty = begin_id < 0 ? 0 : begin_id;
    const int64_t n = g->result->n_prompt;
    const double start = clock_s();
    const enum status st = decoder_begin(&g->decoder, n ? g->result->prompt_tokens : &empty, n ? n : 1, err);
    g->result->prompt_s += clock_s() - start;
    return refuse(g, st, err);
}

/* ---- samples ---- */

static void tell(const struct generator *g, const char *text, size_t length)
{
    if (g->options->on_text)
        g->options->on_text(g->options->context, g->turn, text, length);
}

/* Tells what is sure of the first sample that is not told to its end, and of those behind it once it is. */
static void tell_samples(struct generator *g)
{
    for (; g->turn < g->begun; g->turn++) {
        const bool ended = g->result->samples[g->turn].end != END_NOT;
        struct growing *s = &g->growing[g->turn];
        const size_t sure = ended ? s->text.length : sample_text_sure(&s->text, &g->stops);
        if (!s->opened)
            tell(g, g->result->prompt, strlen(g->result->prompt));
        s->opened = true;
        if (sure > s->told)
            tell(g, s->text.bytes + s->told, sure - s->told);
        s->told = sure;
        if (!ended)
            return;
    }
}

static enum status check_logits(const struct generator *g, const float *logits, struct error *err)
{
    for (int64_t i = 0; i < g->model.config.model.vocab; i++)
        if (!isfinite(logits[i]))
            return error_set(err, BAD_INPUT, "'%s': the model's output for token %lld is %g, so its weights are not those of a "
                             "model that trained well", g->model.checkpoint.path, (long long)i, logits[i]);
    return OK;
}

static void add_token(struct generated *s, struct generated_token token)
{
    if (s->n == s->room) {
        s->room = 2 * s->room + 64;
        s->tokens = xrealloc(s->tokens, (size_t)s->room * sizeof *s->tokens);
    }
    s->tokens[s->n++] = token;
}

/* Draws the next token of a sample and puts its text to it. */
static enum status grow(struct generator *g, int64_t sample, const float *logits, int32_t *token, struct error *err)
{
    struct generated *s = &g->result->samples[sample];
    struct sample_text *text = &g->growing[sample].text;
    char piece[TOKEN_TEXT_MAX];
    if (check_logits(g, logits, err) != OK)
        return err->status;
    *token = sampler_draw(&g->sampler, logits, rng_double(g->options->seed, (uint64_t)sample, (uint64_t)s->n));
    const size_t first = text->size;
    const bool stopped = sample_text_add(text, piece, tokenizer_decode(&g->model.tokenizer, *token, piece), &g->stops);
    const double logprob = g->options->logprobs ? sampler_logprob(logits, (int32_t)g->model.config.model.vocab, *token) : NAN;
    add_token(s, (struct generated_token){*token, logprob, first, text->size});
    s->end = stopped ? END_STOP : s->n == g->options->tokens ? END_TOKENS : END_NOT;
    return OK;
}

static bool interrupted(const struct generator *g) { return g->options->stop && *g->options->stop; }

/* A token of each sample of [first, begun) that has not ended; tokens (together) gets them, -1 for others. Returns how many there are. */
static enum status grow_all(struct generator *g, int64_t first, int32_t tokens[TOGETHER], int64_t *left, struct error *err)
{
    enum status st = OK;
    *left = 0;
    for (int64_t i = 0; i < TOGETHER; i++)
        tokens[i] = -1;
    for (int64_t i = first; i < g->begun && st == OK; i++) {
        struct generated *s = &g->result->samples[i];
        if (s->end == END_NOT)
            st = grow(g, i, g->decoder.logits + (i - first) * g->model.config.model.vocab, &tokens[i - first], err);
        if (s->end != END_NOT)
            tokens[i - first] = -1;
        *left += s->end == END_NOT;
    }
    tell_samples(g);
    return st;
}

static void end_interrupted(struct generator *g, int64_t first)
{
    for (int64_t i = first; i < g->begun; i++)
        if (g->result->samples[i].end == END_NOT)
            g->result->samples[i].end = END_INTERRUPTED;
    tell_samples(g);
}

/* Samples [first, end) from the prompt to their ends. */
static void tell_progress(const struct generator *g, int64_t first, int64_t end, int64_t made)
{
    const struct generate_options *o = g->options;
    if (o->progress && o->tokens <= INT64_MAX / g->result->n)
        o->progress(o->context, first * o->tokens + (end - first) * made, g->result->n * o->tokens);
}

static enum status make_together(struct generator *g, int64_t first, int64_t end, struct error *err)
{
    int32_t tokens[TOGETHER];
    int64_t left = 1, made = 0;
    g->begun = end;
    tell_samples(g);
    enum status st = begin(g, err);
    const double start = clock_s();
    while (st == OK && left && !interrupted(g)) {
        st = grow_all(g, first, tokens, &left, err);
        tell_progress(g, first, end, ++made);
        if (st == OK && left)
            st = refuse(g, decoder_push(&g->decoder, tokens, err), err);
    }
    g->result->tokens_s += clock_s() - start;
    end_interrupted(g, first);
    return st;
}

/* ---- all of it ---- */

static void open_samples(struct generator *g)
{
    struct generate_result *r = g->result;
    r->samples = xcalloc((size_t)r->n, sizeof *r->samples);
    g->growing = xcalloc((size_t)r->n, sizeof *g->growing);
    for (int64_t i = 0; i < r->n; i++)
        sample_text_add(&g->growing[i].text, "", 0, &g->stops);
}

static void release(struct generator *g)
{
    for (int64_t i = 0; g->growing && i < g->result->n; i++) {
        g->result->samples[i].text = g->growing[i].text.bytes;
        g->result->samples[i].length = g->growing[i].text.length;
    }
    free(g->growing);
    decoder_release(&g->decoder);
    sampler_release(&g->sampler);
    trained_release(&g->model);
}

enum status generate_run(const char *checkpoint, const struct generate_options *options, struct generate_result *out, struct error *err)
{
    struct generator g = {.options = options, .result = out, .stops = {options->stop_texts, options->n_stop_texts}};
    *out = (struct generate_result){.n = options->samples ? options->samples : 1};
    enum status st = open_model(&g, checkpoint, err);
    if (st == OK)
        st = encode_prompt(&g, err);
    if (st == OK)
        st = build(&g, err);
    if (st == OK) {
        snprintf(out->checkpoint, sizeof out->checkpoint, "%s", g.model.checkpoint.path);
        out->step = g.model.checkpoint.step;
        out->context = g.model.config.model.seq;
        decode_prompt(&g);
        open_samples(&g);
    }
    for (int64_t i = 0; st == OK && i < out->n && !interrupted(&g); i += TOGETHER)
        st = make_together(&g, i, i + TOGETHER < out->n ? i + TOGETHER : out->n, err);
    release(&g);
    return st;
}

enum status generate_print_program(const char *checkpoint, int64_t samples, FILE *to, struct error *err)
{
    struct generator g = {.options = &(struct generate_options){.device = NULL}};
    struct program *p = NULL;
    enum status st = open_model(&g, checkpoint, err);
    if (st == OK)
        st = decoder_program(&p, &g.model.config, samples < TOGETHER ? samples : TOGETHER, err);
    if (st == OK)
        program_print(p, to);
    program_free(p);
    trained_release(&g.model);
    return st;
}

void generate_release(struct generate_result *r)
{
    for (int64_t i = 0; r->samples && i < r->n; i++) {
        free(r->samples[i].text);
        free(r->samples[i].tokens);
    }
    free(r->samples);
    free(r->prompt);
    free(r->prompt_tokens);
    *r = (struct generate_result){.n = 0};
}
