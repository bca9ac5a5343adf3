/* data.domains beside other keys: it takes the place of data.domain, data.source and data.path, and has stages of train.steps. */
#include <string.h>

#include "config/config_int.h"

static struct config_place place_of(const struct config_reader *r, const char *name) { return r->places[config_key_find(name)]; }

/* Keys that say in another way what the data is. */
static const char *const others[] = {"data.domain", "data.source", "data.path", "data.val_path"};
enum { OTHERS = sizeof others / sizeof *others };

/* What a run keeps of its config says everything: a source that reads no file, and no file, say nothing. */
static bool is_meant(const struct config_reader *r, const char *name)
{
    const struct config_data *d = &r->c->data;
    const struct config_place at = place_of(r, name);
    return (at.line || at.set) && (!strcmp(name, "data.domain") || (!strcmp(name, "data.source") && d->source != SOURCE_CORPUS) ||
                                   (!strcmp(name, "data.path") && *d->path) || (!strcmp(name, "data.val_path") && *d->val_path));
}

/* Back to the default, as if it had not been given. */
static void forget(struct config_reader *r, const char *name)
{
    const int key = config_key_find(name);
    const struct config_key k = config_key(key);
    if (k.type == KEY_NAMES)
        memset((char *)r->c + k.offset, 0, sizeof(struct config_names));
    else
        config_value_read(r, key, (struct config_place){0}, k.initial, false);
    r->places[key] = (struct config_place){0};
}

/* Of the domains and another key that is given, the one on the command line counts, where the other stands in the file. */
void config_settle_domains(struct config_reader *r)
{
    const bool set = place_of(r, "data.domains").set != NULL;
    bool replaced = false;
    for (int i = 0; i < OTHERS; i++) {
        if (set && !place_of(r, others[i]).set)
            forget(r, others[i]);
        replaced |= !set && place_of(r, others[i]).set;
    }
    if (replaced)
        forget(r, "data.domains");
}

static enum status refuse_both(struct config_reader *r, const char *name)
{
    return config_refuse(r, BLAME(r, "data.domains", name), "data.domains and %s are both given, and either says what the data is; "
                         "remove one", name);
}

static enum status refuse_epochs(struct config_reader *r, const char *name)
{
    return config_refuse(r, BLAME(r, name, "data.domains"), "%s is in epochs, and every one of data.domains has epochs of its own; "
                         "give steps", name);
}

static enum status check_steps(struct config_reader *r)
{
    const struct config *c = r->c;
    const int stages = config_stages(c);
    if (c->train.epochs)
        return config_refuse(r, BLAME(r, "train.epochs", "data.domains"), "train.epochs is %lld, and each of data.domains is "
                             "learned for train.steps; remove epochs", (long long)c->train.epochs);
    if (c->eval.every.epochs)
        return refuse_epochs(r, "eval.every");
    if (c->checkpoint.every.epochs)
        return refuse_epochs(r, "checkpoint.every");
    if (c->train.steps > INT32_MAX / stages)
        return config_refuse(r, BLAME(r, "train.steps", "data.domains"), "train.steps is %lld for each of %d data.domains; at most %d "
                             "steps can be counted", (long long)c->train.steps, stages, INT32_MAX);
    return OK;
}

enum status config_check_domains(struct config_reader *r)
{
    const struct config *c = r->c;
    if (!c->data.domains.n)
        return OK;
    for (int i = 0; i < OTHERS; i++)
        if (is_meant(r, others[i]))
            return refuse_both(r, others[i]);
    if (c->data.val_fraction == 0)
        return config_refuse(r, BLAME(r, "data.val_fraction", "data.domains"), "data.val_fraction is 0, and what is forgotten of "
                             "data.domains is measured on their validation parts; it must be above 0");
    return r->saved ? OK : check_steps(r);      /* a run that is done learns no more stages: it is looked at on other data */
}
