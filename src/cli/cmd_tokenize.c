/* hone tokenize */
#include <jansson.h>

#include "cli/cli.h"
#include "data/tokenize.h"
#include "train/train.h"

static enum status print_json(const struct tokenize_result *r, const char *out, struct error *err)
{
    return print_document(json_pack("{s:o, s:I, s:I, s:I, s:i, s:I, s:i, s:f, s:b}", "out", json_text(out), "files", (json_int_t)r->files, "bytes",
                                    (json_int_t)r->bytes, "tokens", (json_int_t)r->tokens, "shards", r->shards, "vocab", (json_int_t)r->vocab, "token_bytes",
                                    r->width, "seconds", r->seconds, "interrupted", r->interrupted), 9, err);
}

static void print_text(const struct tokenize_result *r, const char *out)
{
    char bytes[32], rate[32];
    human_bytes((double)r->bytes, bytes);
    human_bytes((double)r->bytes / (r->seconds > 0 ? r->seconds : 1), rate);
    printf("text      %s in %lld file%s\n", bytes, (long long)r->files, r->files == 1 ? "" : "s");
    printf("tokens    %lld of a vocabulary of %lld: %.2f bytes of text each\n", (long long)r->tokens, (long long)r->vocab,
           r->tokens ? (double)r->bytes / (double)r->tokens : 0);
    printf("shards    %d of %d-byte tokens in %s, with tokenizer.json beside them\n", r->shards, r->width, shown(out));
    if (r->interrupted)
        puts("stopped   before the end of the text; these shards are whole, and hold what comes before");
    printf("time      %.2f s, %s of text per second\n", r->seconds, rate);
}

static int tokenize(const struct tokenize_options *o, bool json)
{
    struct tokenize_result r;
    struct error err;
    struct progress bar = {0};
    struct tokenize_options with = *o;
    with.progress = progress_show_bytes;
    with.context = &bar;
    enum status st = tokenize_run(&with, &r, &err);
    progress_clear(&bar);
    if (st == OK && json)
        st = print_json(&r, o->out, &err);
    else if (st == OK)
        print_text(&r, o->out);
    return st != OK ? report_error(&err) : r.interrupted ? STOPPED_CODE : OK;
}

int cmd_tokenize(int argc, char **argv)
{
    struct text_list positional = {0};
    struct tokenize_options o = {.stop = &stop_requested, .shard_tokens = 100000000};
    bool json = false;
    int64_t threads = 0;
    const struct option_def options[] = {
        {"--tokenizer", "PATH", OPTION_TEXT, &o.tokenizer, "a tokenizer.json, or a folder with one or with vocab.json and merges.txt; required"},
        {"--out", "DIR", OPTION_TEXT, &o.out, "the folder for the shards, empty or not there yet; required"},
        {"--between", "TOKEN", OPTION_TEXT, &o.between, "a special token behind every file, such as <|endoftext|> (default none)"},
        {"--shard", "N", OPTION_INT, &o.shard_tokens, "tokens of a shard (default 100000000)"},
        {"--threads", "N", OPTION_INT, &threads, "threads (default all cores); the tokens are the same"},
        {"--json", NULL, OPTION_FLAG, &json, "print the result as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "tokenize", "TEXT...", "Makes shards of tokens from text, for data.source: bin. TEXT is a file, a folder or a pattern; files may be gzip. The shards are those of\n"
        "llm.c, of uint16 or, where the vocabulary is larger, uint32; the tokenizer is put beside them, and checkpoints carry it on.", options,
        "  hone tokenize books/ --tokenizer gpt2/ --out shards --between '<|endoftext|>'\n"
        "  hone train mine.yaml --set data.source=bin --set 'data.path=shards/*.bin'\n"
        "  hone tokenize 'wiki-*.txt.gz' --tokenizer tokenizer.json --out shards --json\n", 1, MAX_LIST};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    if (!o.tokenizer || !o.out || !*o.out) {
        error_set(&err, BAD_INPUT, !o.tokenizer ? "--tokenizer is missing: a tokenizer.json, such as `hone tokenizer train` makes"
                                                : "--out is missing: the folder for the shards, such as --out shards");
        return report_error(&err);
    }
    if (o.shard_tokens < 1 || o.shard_tokens > INT32_MAX || threads < 0 || threads > 4096) {
        error_set(&err, BAD_INPUT, threads < 0 || threads > 4096 ? "--threads must be 0 to 4096" : "--shard must be 1 to %d", INT32_MAX);
        return report_error(&err);
    }
    o.texts = positional.item;
    o.n_texts = positional.n;
    o.threads = (int)threads;
    install_stop_handler();
    return tokenize(&o, json);
}
