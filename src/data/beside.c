/* The tokenizer.json beside shards: shards that were written with one tokenizer and are read with another are other words. */
#include <stdio.h>
#include <string.h>

#include "data/data_int.h"

void beside_warn(struct dataset *d, const struct config *c, const struct bpe *named, const char *folder)
{
    struct bpe *beside = NULL;
    struct error ignored;
    size_t a, b;
    if (c->data.source != SOURCE_BIN || !bpe_is_there(folder) || bpe_open(&beside, folder, &ignored) != OK)
        return;
    const char *one = bpe_json(named, &a), *other = bpe_json(beside, &b);
    if (a != b || memcmp(one, other, a))
        dataset_warn(d, "data.tokenizer '%s' is another one than the tokenizer beside the shards, '%s': if they were written with that, their ids mean other text; leave data.tokenizer out",
                     c->data.tokenizer, folder);
    bpe_free(beside);
}

/* The folder of a file. */
static void folder_of(char folder[CONFIG_PATH_MAX], const char *file)
{
    const char *slash = strrchr(file, '/');
    snprintf(folder, CONFIG_PATH_MAX, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
}

/* The run itself has trained on its data so, and was told: there is no more to say than that. */
static bool is_own_data(const struct config *c, bool val)
{
    char where[CONFIG_WHERE_MAX];
    return *config_where(c, val ? "data.val_path" : "data.path", where) == '\'';       /* else it shows --set */
}

static enum status tell_other(struct dataset *d, const struct config *c, const char *folder, const struct tokenizer *beside, const struct tokenizer *given, bool own,
                              struct error *err)
{
    char there[TOKEN_TEXT_MAX], here[TOKEN_TEXT_MAX];
    const int32_t id = tokenizer_differ(beside, given);
    if (id < 0 && beside->n != given->n)            /* as of the same text, and one of them has gone on */
        dataset_warn(d, "the tokenizer beside the shards, '%s', has %d tokens, and that of the model, '%s', has %d: the text is cut otherwise than the model would", folder,
                     beside->n, c->file, given->n);
    if (id < 0)
        return OK;
    tokenizer_decode(beside, id, there);
    tokenizer_decode(given, id, here);
    if (!own)
        return error_set(err, BAD_INPUT, "the tokenizer beside the shards, '%.300s', is another one than that of the model, '%.300s': token %d is '%.40s' there and '%.40s' here, "
                         "so their ids mean other text; give the text itself, or shards that the model's tokenizer wrote", folder, c->file, id, there, here);
    dataset_warn(d, "the tokenizer beside the shards, '%s', is another one than that of the model, '%s': token %d is '%.40s' there and '%.40s' here; if they were "
                 "written with that, their ids mean other text", folder, c->file, id, there, here);
    return OK;
}

static enum status check_folder(struct dataset *d, const struct config *c, const char *folder, const struct tokenizer *given, bool own, struct error *err)
{
    struct tokenizer beside = {.kind = TOKENIZER_NONE};
    struct bpe *b = NULL;
    struct error ignored;
    if (!bpe_is_there(folder) || bpe_open(&b, folder, &ignored) != OK)
        return OK;
    tokenizer_init_bpe(&beside, b);
    const enum status st = tell_other(d, c, folder, &beside, given, own, err);
    tokenizer_release(&beside);
    return st;
}

/* Shards of one folder follow one another. */
enum status beside_check(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    char folder[CONFIG_PATH_MAX], last[CONFIG_PATH_MAX] = "";
    enum status st = OK;
    for (int i = 0; i < d->n_stores && st == OK && c->data.source == SOURCE_BIN; i++) {
        folder_of(folder, d->stores[i].name);
        if (strcmp(folder, last))
            st = check_folder(d, c, folder, given, is_own_data(c, d->stores[i].val), err);
        memcpy(last, folder, sizeof last);
    }
    return st;
}
