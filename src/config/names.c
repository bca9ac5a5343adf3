/* Lists of names: words of the schema, or text files. Who reads such a list asks config_domain what a name is. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "config/config_int.h"

const char *config_name(const struct config_names *names, int64_t i)
{
    const char *at = names->text;
    for (; i > 0; i--)
        at += strlen(at) + 1;
    return at;
}

static const struct config_choice *choice_of(const struct config_choice *choices, const char *name)
{
    for (; choices->word; choices++)
        if (!strcmp(choices->word, name))
            return choices;
    return NULL;
}

bool config_domain(const char *name, enum data_domain *out)
{
    const struct config_choice *c = choice_of(config_key(config_key_find("data.domains")).choices, name);
    if (c)
        *out = (enum data_domain)c->value;
    return c != NULL;
}

int config_stages(const struct config *c) { return c->data.domains.n ? (int)c->data.domains.n : 1; }

/* What a name may be meant as: a word that is near, or a file in another folder. */
static void suggest(const char *name, const char *near, char out[PATH_MAX])
{
    char folder[256];
    *out = '\0';
    if (near)
        snprintf(out, PATH_MAX, "; did you mean '%s'?", near);
    else if (*name && *name != '/' && strpbrk(name, "./") && getcwd(folder, sizeof folder))
        snprintf(out, PATH_MAX, "; relative paths start from '%s'", folder);
}

static enum status refuse_name(struct config_reader *r, int key, struct config_place at, const char *name)
{
    const struct config_choice *choices = config_key(key).choices;
    const char *words[CONFIG_LIST_MAX], *near;
    char list[256], shown[CONFIG_SHOWN_MAX], more[PATH_MAX];
    int n = 0;
    for (; choices[n].word; n++)
        words[n] = choices[n].word;
    config_join(list, sizeof list, words, n, ", ", ", ");
    near = suggest_nearest(name, words, n);
    suggest(name, near, more);
    return config_refuse(r, at, "%s holds '%s', and there is no such file; choose %s or a text file%.300s", config_key(key).name, config_shown(shown, name), list, more);
}

/* What a run has kept is taken as it stands: its files may have moved, and not everybody needs them. */
static bool is_kept(const struct config_reader *r, struct config_place at) { return r->saved && !at.set; }

static enum status check_name(struct config_reader *r, int key, struct config_place at, const struct config_names *names,
                              const char *name)
{
    char shown[CONFIG_SHOWN_MAX];
    if (!choice_of(config_key(key).choices, name) && (!*name || (!is_kept(r, at) && access(name, F_OK))))
        return refuse_name(r, key, at, name);
    for (int64_t i = 0; i < names->n; i++)
        if (!strcmp(config_name(names, i), name))
            return config_refuse(r, at, "%s holds '%s' twice; name each once", config_key(key).name, config_shown(shown, name));
    return OK;
}

enum status config_names_add(struct config_reader *r, int key, struct config_place at, const char *name, bool first)
{
    struct config_names *names = (struct config_names *)((char *)r->c + config_key(key).offset);
    if (first)
        memset(names, 0, sizeof *names);
    if (names->n == CONFIG_LIST_MAX)
        return config_refuse(r, at, "%s holds more than %d names", config_key(key).name, CONFIG_LIST_MAX);
    enum status st = config_path_check(r, key, at, name);
    if (st == OK)
        st = check_name(r, key, at, names, name);
    if (st != OK)
        return st;
    const size_t used = (size_t)(config_name(names, names->n) - names->text), length = strlen(name);
    if (used + length >= sizeof names->text)
        return config_refuse(r, at, "%s holds names of more than %d bytes; use shorter paths", config_key(key).name,
                             CONFIG_NAMES_BYTES - CONFIG_LIST_MAX);
    memcpy(names->text + used, name, length);
    names->n++;
    return OK;
}

void config_names_print(const struct config_names *names, FILE *to)
{
    enum data_domain domain;
    putc('[', to);
    for (int64_t i = 0; i < names->n; i++) {
        const char *name = config_name(names, i);
        fputs(i ? ", " : "", to);
        if (config_domain(name, &domain))
            fputs(name, to);
        else
            config_path_print(name, to);
    }
    putc(']', to);
}
