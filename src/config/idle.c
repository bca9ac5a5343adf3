/* Keys that say nothing in a config, because of what another one is: how long the built-in corpus is where the data is a file. They are
 * taken all the same, as a config may be made for several others by --set; who asks what is wrong with one is told, and configs that differ in such
 * a key alone say the same. */
#include <string.h>

#include "config/config_int.h"

static bool no_corpus(const struct config *c) { return !c->data.domains.n && c->data.source != SOURCE_CORPUS; }
static bool no_text(const struct config *c) { return !c->data.domains.n && c->data.source != SOURCE_TEXT; }
static bool no_regions(const struct config *c) { return c->data.source != SOURCE_REGIONS; }
static bool no_symbols(const struct config *c) { return c->data.source == SOURCE_BIN || c->data.source == SOURCE_REGIONS; }
static bool has_tokenizer(const struct config *c) { return *c->data.tokenizer; }
static bool has_val_path(const struct config *c) { return *c->data.val_path; }
static bool no_llama(const struct config *c) { return c->model.arch != ARCH_LLAMA; }
static bool no_scaling(const struct config *c) { return c->model.rope_scaling == ROPE_PLAIN; }
static bool no_llama3(const struct config *c) { return c->model.rope_scaling != ROPE_LLAMA3; }
static bool no_tree(const struct config *c) { return c->model.arch != ARCH_K1; }
static bool selects_all(const struct config *c) { return c->k1.select == SELECT_ALL; }
static bool has_epochs(const struct config *c) { return c->train.epochs > 0; }
static bool no_fall(const struct config *c) { return c->train.schedule == SCHEDULE_CONSTANT; }

static const struct idle {
    const char *key;
    bool (*is)(const struct config *c);
    const char *because;                /* the key that makes it so */
} idle_keys[] = {
    {"model.rope_base", no_llama, "model.arch"},
    {"model.rope_factor", no_scaling, "model.rope_scaling"},
    {"model.rope_low", no_llama3, "model.rope_scaling"},
    {"model.rope_high", no_llama3, "model.rope_scaling"},
    {"model.rope_context", no_llama3, "model.rope_scaling"},
    {"data.domain", no_corpus, "data.source"},
    {"data.chars", no_corpus, "data.source"},
    {"data.max_chars", no_text, "data.source"},
    {"data.region", no_regions, "data.source"},
    {"data.tokens", no_symbols, "data.source"},
    {"data.tokens", has_tokenizer, "data.tokenizer"},
    {"data.val_fraction", has_val_path, "data.val_path"},
    {"train.steps", has_epochs, "train.epochs"},
    {"train.min_lr", no_fall, "train.schedule"},
    {"k1.k", no_tree, "model.arch"},
    {"k1.k", selects_all, "k1.select"},
    {"k1.score", no_tree, "model.arch"},
    {"k1.select", no_tree, "model.arch"},
    {"k1.every", no_tree, "model.arch"},
};
enum { IDLE_KEYS = sizeof idle_keys / sizeof *idle_keys };

static const struct idle *find(const struct config *c, const char *key)
{
    for (int i = 0; i < IDLE_KEYS; i++)
        if (!strcmp(idle_keys[i].key, key) && idle_keys[i].is(c))
            return &idle_keys[i];
    return NULL;
}

bool config_is_idle(const struct config *c, const char *key) { return find(c, key) != NULL; }

static void show(char out[CONFIG_SHOWN_MAX], const struct config *c, int key)
{
    FILE *to = fmemopen(out, CONFIG_SHOWN_MAX, "w");
    *out = '\0';
    if (!to)
        return;
    config_value_print(c, key, to);
    fclose(to);
    out[CONFIG_SHOWN_MAX - 1] = '\0';
}

/* What a run keeps of its config has all keys; only one that somebody has changed was meant to say something. */
static bool is_default(const struct config *c, int key)
{
    struct config plain;
    struct config_reader r = {.c = &plain};
    char initial[CONFIG_SHOWN_MAX], now[CONFIG_SHOWN_MAX];
    config_value_read(&r, key, (struct config_place){0}, config_key(key).initial, false);
    show(initial, &plain, key);
    show(now, c, key);
    return !strcmp(initial, now);
}

bool config_tell_idle(const struct config *c, int *at, char words[CONFIG_IDLE_WORDS])
{
    char value[CONFIG_SHOWN_MAX], other[CONFIG_SHOWN_MAX];
    for (; *at < config_key_count(); ++*at) {
        const struct idle *i = find(c, config_key(*at).name);
        if (!i || is_default(c, *at))
            continue;
        show(value, c, *at);
        show(other, c, config_key_find(i->because));
        snprintf(words, CONFIG_IDLE_WORDS, "%s is %s, and says nothing, as %s is %s", i->key, value, i->because, other);
        ++*at;
        return true;
    }
    return false;
}
