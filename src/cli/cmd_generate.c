/* hone generate */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "cli/cli.h"
#include "core/arena.h"
#include "core/clean.h"
#include "train/train.h"

enum { SAMPLES_MOST = 10000 };

/* ---- text ---- */

struct screen {
    struct text_stream terminal;
    bool is_terminal;
    int64_t samples, sample;        /* in all, and the one that is written */
    struct progress bar;
};

static void begin_sample(struct screen *s, int64_t sample)
{
    if (s->samples > 1)
        printf("%s--- sample %lld of %lld\n", sample ? "\n" : "", (long long)sample + 1, (long long)s->samples);
    s->sample = sample;
}

/* A file or a program gets the bytes as the model made them; a terminal what is safe to show. */
static void emit(void *context, int64_t sample, const char *text, size_t length)
{
    struct screen *s = context;
    if (sample != s->sample) {
        text_stream_end(&s->terminal);
        begin_sample(s, sample);
    }
    if (s->is_terminal)
        text_stream_put(&s->terminal, text, length);
    else
        fwrite(text, 1, length, stdout);
    if (fflush(stdout))
        stop_requested = 1;         /* nobody reads on; main reports it */
}

/* ---- JSON ---- */

/* Any bytes: what is not UTF-8 becomes U+FFFD. */
static json_t *bytes_json(const char *bytes, size_t n)
{
    char *text = xcalloc(n + 1, 1);
    memcpy(text, bytes, n);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : '\xff';
    char *valid = text_utf8(text);
    json_t *j = json_string(valid);
    free(valid);
    free(text);
    return j;
}

/* The list with one more; NULL where there was no memory for it. */
static json_t *append(json_t *list, json_t *one)
{
    if (json_array_append_new(list, one) == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *tokens_json(const struct generated *s)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < s->n; i++) {
        const struct generated_token *t = &s->tokens[i];
        list = append(list, json_pack("{s:i, s:o, s:o}", "id", t->id, "text", bytes_json(s->text + t->first, t->end - t->first), "logprob",
                                      isfinite(t->logprob) ? json_real(t->logprob) : json_null()));
    }
    return list;
}

static json_t *samples_json(const struct generate_result *r)
{
    static const char *const ends[] = {[END_NOT] = "interrupted", [END_TOKENS] = "tokens", [END_STOP] = "stop", [END_INTERRUPTED] = "interrupted"};
    json_t *list = json_array();
    for (int64_t i = 0; i < r->n; i++) {
        const struct generated *s = &r->samples[i];
        double sum = 0;
        for (int64_t k = 0; k < s->n; k++)
            sum += s->tokens[k].logprob;
        list = append(list, json_pack("{s:o, s:s, s:o, s:o}", "text", bytes_json(s->text, s->length), "end", ends[s->end], "logprob",
                                      isfinite(sum) ? json_real(sum) : json_null(), "tokens", tokens_json(s)));
    }
    return list;
}

static json_t *ids_json(const int32_t *ids, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        list = append(list, json_integer(ids[i]));
    return list;
}

/* The first token of a sample comes with the prompt. NAN: no other was made. */
static double rate_of(const struct generate_result *r)
{
    double tokens = 0;
    for (int64_t i = 0; i < r->n; i++)
        tokens += (double)(r->samples[i].n > 0 ? r->samples[i].n - 1 : 0);
    return tokens > 0 && r->tokens_s > 0 ? tokens / r->tokens_s : NAN;
}

static enum status print_json(const struct generate_result *r, struct error *err)
{
    const double rate = rate_of(r);
    return print_document(json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "checkpoint", json_text(r->checkpoint), "step", (json_int_t)r->step,
                                    "context", (json_int_t)r->context, "prompt", bytes_json(r->prompt, strlen(r->prompt)), "prompt_tokens",
                                    ids_json(r->prompt_tokens, r->n_prompt), "tokens_per_s", isfinite(rate) ? json_real(rate) : json_null(),
                                    "samples", samples_json(r)), 9, err);
}

/* ---- the command ---- */

/* As it was given: what was not is as it must be. */
static enum status check(const struct generate_options *o, bool k_given, int64_t seed, struct error *err)
{
    if (o->tokens < 1)
        return error_set(err, BAD_INPUT, "--tokens must be at least 1, not %lld", (long long)o->tokens);
    if (o->temperature < 0)
        return error_set(err, BAD_INPUT, "--temperature is %g; it must not be negative", o->temperature);
    if (k_given && o->top_k < 1)
        return error_set(err, BAD_INPUT, "--top-k must be at least 1; without it all tokens can be drawn");
    if (!(o->top_p > 0 && o->top_p <= 1))
        return error_set(err, BAD_INPUT, "--top-p is %g; choose a probability above 0 and up to 1", o->top_p);
    if (o->samples < 1 || o->samples > SAMPLES_MOST)
        return error_set(err, BAD_INPUT, "--samples is %lld; choose 1 to %d", (long long)o->samples, SAMPLES_MOST);
    if (seed < 0)
        return error_set(err, BAD_INPUT, "--seed is %lld; it must not be negative", (long long)seed);
    for (int i = 0; i < o->n_stop_texts; i++)
        if (!*o->stop_texts[i])
            return error_set(err, BAD_INPUT, "--stop must not be empty");
    return OK;
}

static void on_progress(void *context, int64_t done, int64_t total)
{
    struct screen *s = context;
    char text[64];
    if (!s->bar.total)
        progress_start(&s->bar, 0, total);
    snprintf(text, sizeof text, "token %lld/%lld", (long long)done, (long long)total);
    progress_show(&s->bar, done, text);
}

/* Text is seen as it is made; a document stands at the end. */
static int generate(const char *checkpoint, struct generate_options *o, bool json)
{
    struct screen s = {.terminal = {.to = stdout}, .is_terminal = isatty(STDOUT_FILENO), .samples = o->samples, .sample = -1};
    struct generate_result r;
    struct error err;
    o->on_text = json ? NULL : emit;
    o->progress = json ? on_progress : NULL;
    o->context = &s;
    enum status st = generate_run(checkpoint, o, &r, &err);
    progress_clear(&s.bar);
    text_stream_end(&s.terminal);
    if (st == OK && json)
        st = print_json(&r, &err);
    else if (st == OK)
        putchar('\n');
    generate_release(&r);
    return st == OK ? OK : report_error(&err);
}

int cmd_generate(int argc, char **argv)
{
    struct text_list positional = {0}, stops = {0};
    struct generate_options o = {.prompt = "", .tokens = 200, .temperature = 0.8, .top_p = 1, .samples = 1, .stop = &stop_requested};
    int64_t seed = 1, top_k = INT64_MIN;        /* not given */
    bool json = false, print = false;
    struct picked device = {.words = device_words};
    const struct option_def options[] = {
        {"--prompt", "TEXT", OPTION_TEXT, &o.prompt, "text to continue (token ids for models trained on .bin shards)"},
        {"--tokens", "N", OPTION_INT, &o.tokens, "how many tokens to add (default 200)"},
        {"--temperature", "X", OPTION_REAL, &o.temperature, "0 takes the most likely token each time (default 0.8)"},
        {"--top-k", "N", OPTION_INT, &top_k, "draw from the N most likely tokens alone (default all)"},
        {"--top-p", "P", OPTION_REAL, &o.top_p, "draw from the most likely tokens that have probability P together (default 1: all)"},
        {"--stop", "TEXT", OPTION_LIST, &stops, "end before this text; may be repeated"},
        {"--samples", "N", OPTION_INT, &o.samples, "how many texts to write (default 1)"},
        {"--seed", "N", OPTION_INT, &seed, "the same seed gives the same text (default 1)"},
        {"--device", NULL, OPTION_WORD, &device, "where to run (default: where it was trained)"},
        {"--print-program", NULL, OPTION_FLAG, &print, "show the program of one token and stop"},
        {"--json", NULL, OPTION_FLAG, &json, "print texts, tokens and their log-probabilities as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "generate", "CHECKPOINT", "Continues a prompt. CHECKPOINT is the folder of a run or of one of its checkpoints.", options,
        "  hone generate runs/quickstart\n  hone generate runs/quickstart --prompt \"The \" --tokens 400 --temperature 0.5\n"
        "  hone generate runs/quickstart --top-k 40 --top-p 0.95 --stop \". \" --samples 3 --json\n", 1, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    o.top_k = top_k == INT64_MIN ? 0 : top_k;
    o.seed = (uint64_t)seed;
    o.device = device.text;
    o.logprobs = json;
    o.stop_texts = stops.item;
    o.n_stop_texts = stops.n;
    if (refuse_json_program(json, print, &err) != OK || check(&o, top_k != INT64_MIN, seed, &err) != OK)
        return report_error(&err);
    if (print)
        return generate_print_program(positional.item[0], o.samples, stdout, &err) == OK ? OK : report_error(&err);
    install_stop_handler();
    signal(SIGPIPE, SIG_DFL);           /* text that nobody reads need not be made */
    return generate(positional.item[0], &o, json);
}
