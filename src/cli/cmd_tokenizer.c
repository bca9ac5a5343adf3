/* hone tokenizer */
#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "core/clean.h"
#include "core/notice.h"
#include "data/tokenize.h"
#include "train/train.h"

/* Who asked for more would find that out in the sizes of a model. */
static void tell_fewer(const struct bpe_training *how, int64_t vocab)
{
    if (vocab < how->vocab)
        notice_tell("the vocabulary has %lld tokens, and --vocab is %d: no other pair comes %lld time%s in the text (--least)", (long long)vocab, how->vocab,
                    (long long)how->least, how->least == 1 ? "" : "s");
}

static int train(const struct tokenizer_train_options *o, bool json)
{
    struct tokenizer_train_result r;
    struct error err;
    struct progress bar = {0};
    char bytes[32];
    struct tokenizer_train_options with = *o;
    with.progress = progress_show_bytes;
    with.context = &bar;
    enum status st = tokenizer_train_run(&with, &r, &err);
    progress_clear(&bar);
    if (st == OK && json)
        st = print_document(json_pack("{s:o, s:I, s:I, s:I, s:f}", "out", json_text(o->out), "files", (json_int_t)r.files, "bytes", (json_int_t)r.bytes,
                                      "vocab", (json_int_t)r.vocab, "seconds", r.seconds), 9, &err);
    if (st != OK)
        return report_error(&err);
    tell_fewer(&o->how, r.vocab);
    human_bytes((double)r.bytes, bytes);
    if (!json)
        printf("text        %s in %lld file%s\nvocabulary  %lld tokens, %d of them special\nwritten     %s\ntime        %.2f s\n", bytes, (long long)r.files,
               r.files == 1 ? "" : "s", (long long)r.vocab, o->how.n_specials, shown(o->out), r.seconds);
    return OK;
}

static enum status check(const struct tokenizer_train_options *o, int64_t vocab, int64_t threads, struct error *err)
{
    const int64_t least = 256 + o->how.n_specials;
    if (!o->out || !*o->out)
        return error_set(err, BAD_INPUT, "--out is missing: the file to write, such as --out tokenizer.json");
    if (vocab < least || vocab > 1 << 20)
        return error_set(err, BAD_INPUT, "--vocab is %lld; it must be %lld (the bytes and the special tokens) to %d", (long long)vocab, (long long)least, 1 << 20);
    if (threads < 0 || threads > 4096)
        return error_set(err, BAD_INPUT, "--threads must be 0 to 4096");
    if (o->how.least < 1)
        return error_set(err, BAD_INPUT, "--least must be at least 1");
    for (int i = 0; i < o->how.n_specials; i++) {
        if (!text_is_utf8(o->how.specials[i]))
            return error_set(err, BAD_INPUT, "--special is '%.60s', which is not UTF-8", o->how.specials[i]);
        for (int k = 0; k < i || !*o->how.specials[i]; k++)
            if (!*o->how.specials[i] || !strcmp(o->how.specials[i], o->how.specials[k]))
                return error_set(err, BAD_INPUT, "--special is '%.60s', which is %s", o->how.specials[i], *o->how.specials[i] ? "there twice" : "empty");
    }
    return OK;
}

enum cut { CUT_GPT2, CUT_LLAMA3 };
static const char *const cuts[] = {[CUT_GPT2] = "gpt2", [CUT_LLAMA3] = "llama3", NULL};

int cmd_tokenizer(int argc, char **argv)
{
    struct text_list positional = {0}, specials = {0};
    struct picked cut = {.words = cuts, .at = CUT_GPT2};
    struct tokenizer_train_options o = {.stop = &stop_requested, .how = {.least = 2}};
    bool json = false;
    int64_t vocab = 8192, threads = 0;
    const struct option_def options[] = {
        {"--out", "FILE", OPTION_TEXT, &o.out, "the tokenizer.json to write; required"},
        {"--vocab", "N", OPTION_INT, &vocab, "tokens in the end (default 8192)"},
        {"--special", "TOKEN", OPTION_LIST, &specials, "a special token; may be repeated (default <|endoftext|>)"},
        {"--cut", NULL, OPTION_WORD, &cut, "how text is cut into words first (default gpt2)"},
        {"--least", "N", OPTION_INT, &o.how.least, "a pair that comes less often is not merged (default 2)"},
        {"--threads", "N", OPTION_INT, &threads, "threads (default all cores); the result is the same"},
        {"--json", NULL, OPTION_FLAG, &json, "print the result as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "tokenizer", "train TEXT...", "Makes a tokenizer of byte-level BPE from text: a tokenizer.json that hone and Hugging Face's tokenizers read. TEXT is a file, a folder\n"
        "or a pattern; files may be gzip.", options,
        "  hone tokenizer train books/ --vocab 16384 --out tokenizer.json\n  hone tokenize books/ --tokenizer tokenizer.json --out shards\n", 2, MAX_LIST};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    if (!specials.n)
        specials.item[specials.n++] = "<|endoftext|>";
    o.how.specials = specials.item;
    o.how.n_specials = specials.n;
    o.how.vocab = (int32_t)vocab;
    o.threads = (int)threads;
    o.texts = positional.item + 1;
    o.n_texts = positional.n - 1;
    if (strcmp(positional.item[0], "train")) {
        error_set(&err, BAD_INPUT, "hone tokenizer knows train, not '%.40s'", positional.item[0]);
        return report_error(&err);
    }
    o.how.cutting = (struct cutting){.words_with_marks = cut.at == CUT_LLAMA3, .digits = cut.at == CUT_LLAMA3 ? 3 : 0};
    if (check(&o, vocab, threads, &err) != OK)
        return report_error(&err);
    install_stop_handler();
    return train(&o, json);
}
