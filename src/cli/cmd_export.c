/* hone export */
#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "train/bring.h"
#include "train/train.h"

static const char *const forms[] = {[EXPORT_HF] = "hf", [EXPORT_TORCH] = "torch", NULL};

static json_t *files_json(const struct export_result *r)
{
    json_t *list = json_array();
    for (int i = 0; list && i < r->n_files; i++)
        if (json_array_append_new(list, json_string(r->files[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* hone import reads what transformers would; hone's own names go back through a config that says what the model is. */
static void print_text(const struct export_result *r, enum export_form form, const char *out)
{
    printf("checkpoint  %s\nwritten     %s: ", shown(r->checkpoint), shown(out));
    for (int i = 0; i < r->n_files; i++)
        printf("%s%s", i ? ", " : "", r->files[i]);
    putchar('\n');
    if (r->tokens == TOKENIZER_CHAR || r->tokens == TOKENIZER_BYTE)
        printf("tokens      %d %s, which tokenizers of others have no form for; " TOKENS_FILE " has them by id, and %s reads it\n", r->n_tokens, tokenizer_unit(r->tokens),
               form == EXPORT_HF ? "hone import" : "train.init");
}

static int export(const char *checkpoint, enum export_form form, const char *out, bool json)
{
    struct export_result r;
    struct error err;
    enum status st = export_run(checkpoint, form, out, &r, &err);
    if (st == OK && json)
        st = print_document(json_pack("{s:o, s:s, s:o, s:o}", "checkpoint", json_text(r.checkpoint), "to", forms[form], "out", json_text(out), "files", files_json(&r)), 9, &err);
    else if (st == OK)
        print_text(&r, form, out);
    return st == OK ? OK : report_error(&err);
}

int cmd_export(int argc, char **argv)
{
    struct text_list positional = {0};
    const char *out = NULL;
    struct picked to = {.words = forms};
    bool json = false;
    const struct option_def options[] = {
        {"--to", NULL, OPTION_WORD, &to, "for transformers (gpt and llama), or with a model.py of plain PyTorch; required"},
        {"--out", "DIR", OPTION_TEXT, &out, "the folder to write, empty or not there yet; required"},
        {"--json", NULL, OPTION_FLAG, &json, "print the result as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "export", "CHECKPOINT", "Writes the weights of a model for other programs. CHECKPOINT is the folder of a run or of one of its checkpoints.", options,
        "  hone export runs/mine --to hf --out mine-hf\n"
        "  python3 -c 'from transformers import AutoModelForCausalLM as M; M.from_pretrained(\"mine-hf\")'\n"
        "  hone export runs/mine --to torch --out mine-torch && python3 mine-torch/model.py 1 2 3\n", 1, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    if (!to.text) {
        error_set(&err, BAD_INPUT, "--to is missing; choose hf (Hugging Face's transformers) or torch (plain PyTorch)");
        return report_error(&err);
    }
    if (!out || !*out) {
        error_set(&err, BAD_INPUT, "--out is missing: the folder to write, such as --out mine-hf");
        return report_error(&err);
    }
    install_stop_handler();
    return export(positional.item[0], (enum export_form)to.at, out, json);
}
