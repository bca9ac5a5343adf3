/* hone import */
#include <jansson.h>

#include "cli/cli.h"
#include "train/bring.h"
#include "train/train.h"

static enum status print_json(const struct import_result *r, struct error *err)
{
    const struct config_model *m = &r->config.model;
    return print_document(json_pack("{s:o, s:s, s:s, s:i, s:i, s:I, s:o, s:{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}, s:b, s:o}", "from", json_text(r->from),
                                    "family", r->title, "types", r->types, "files", r->files, "tensors", r->tensors, "parameters",
                                    (json_int_t)r->parameters, "note", r->note ? json_string(r->note) : json_null(), "model", "arch",
                                    config_word("model.arch", (int)m->arch), "vocab", (json_int_t)m->vocab, "dim", (json_int_t)m->dim, "layers",
                                    (json_int_t)m->layers, "heads", (json_int_t)m->heads, "kv_heads", (json_int_t)m->kv_heads, "ffn",
                                    (json_int_t)m->ffn, "seq", (json_int_t)m->seq, "tied_head", config_head_is_tied(m), "tokenizer", r->has_tokenizer, "checkpoint",
                                    json_text(r->checkpoint)), 9, err);
}

static void print_text(const struct import_result *r)
{
    const struct config_model *m = &r->config.model;
    char parameters[32];
    human_count((double)r->parameters, parameters);
    printf("from        %s, %s, %d file%s of %s\n", shown(r->from), r->title, r->files, r->files == 1 ? "" : "s", r->types);
    printf("model       %s with %s parameters in %d tensors\n", config_word("model.arch", (int)m->arch), parameters, r->tensors);
    printf("sizes       vocab %lld, dim %lld, layers %lld, heads %lld, kv_heads %lld, ffn %lld, seq %lld, head %s\n", (long long)m->vocab,
           (long long)m->dim, (long long)m->layers, (long long)m->heads, (long long)m->kv_heads, (long long)m->ffn, (long long)m->seq,
           config_head_is_tied(m) ? "tied" : "own");
    printf("tokens      %s\n", shown(r->tokens));
    if (r->note)
        printf("note        %s\n", r->note);
    printf("checkpoint  %s\n", shown(r->checkpoint));
}

int cmd_import(int argc, char **argv)
{
    struct text_list positional = {0}, sets = {0};
    bool json = false;
    struct import_options o = {.out = NULL};
    const struct option_def options[] = {
        {"--out", "DIR", OPTION_TEXT, &o.out, "the folder for the checkpoint, empty or not there yet; required"},
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "what the files do not say (model.heads), or shorter samples (model.seq); may be repeated"},
        {"--json", NULL, OPTION_FLAG, &json, "print the result as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "import", "MODEL", "Makes a checkpoint of weights that others wrote. MODEL is a folder with config.json and model.safetensors (or shards\n"
        "and their index), or a safetensors file: GPT-2 and LLaMA of Hugging Face, nanoGPT, LLaMA of Meta; F32, F16, BF16 or F64.", options,
        "  hone import gpt2 --out runs/gpt2\n  hone generate runs/gpt2 --prompt \"The \"\n  hone import nano.safetensors --set model.heads=6 --out runs/nano\n"
        "  hone train mine.yaml --set train.init=runs/gpt2\n", 1, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    if (!o.out) {
        error_set(&err, BAD_INPUT, "--out is missing: the folder for the checkpoint, such as --out runs/mine");
        return report_error(&err);
    }
    o.sets = sets.item;
    o.n_sets = sets.n;
    install_stop_handler();
    struct import_result r;
    enum status st = import_run(positional.item[0], &o, &r, &err);
    if (st == OK && json)
        st = print_json(&r, &err);
    else if (st == OK)
        print_text(&r);
    return st == OK ? OK : report_error(&err);
}
