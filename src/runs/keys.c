/* Keys in which the configs of runs differ. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "runs/runs.h"

/* The first run whose config is known, which the others are held against; -1: none. */
static int first_known(const struct runs *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->run[i].config)
            return i;
    return -1;
}

static struct run_key *find_or_add(struct run_keys *k, const char *key)
{
    for (int i = 0; i < k->n; i++)
        if (!strcmp(k->key[i].key, key))
            return &k->key[i];
    k->key = xrealloc(k->key, (size_t)(k->n + 1) * sizeof *k->key);
    k->key[k->n] = (struct run_key){key, xcalloc((size_t)k->runs, sizeof(char *))};
    return &k->key[k->n++];
}

static void compare(struct run_keys *k, const struct runs *r, int base, int i, struct config_difference *d)
{
    for (int at = 0; config_differ(d, r->run[base].config, r->run[i].config, &at);) {
        struct run_key *key = find_or_add(k, d->key);
        key->value[i] = xstrdup(d->b);
        if (!key->value[base])
            key->value[base] = xstrdup(d->a);
    }
}

/* Where a run does not differ from the first, it has what that has. */
static void fill(struct run_keys *k, const struct runs *r, int base)
{
    for (int i = 0; i < k->n; i++)
        for (int n = 0; n < r->n; n++)
            if (r->run[n].config && !k->key[i].value[n])
                k->key[i].value[n] = xstrdup(k->key[i].value[base]);
}

/* ---- in the order of the reference ---- */

struct sorted { struct run_keys *k; int n; };

static void move_up(const char *name, void *context)
{
    struct sorted *s = context;
    for (int i = s->n; i < s->k->n; i++)
        if (!strcmp(s->k->key[i].key, name)) {
            const struct run_key found = s->k->key[i];
            s->k->key[i] = s->k->key[s->n];
            s->k->key[s->n++] = found;
            return;
        }
}

void run_keys_init(struct run_keys *k, const struct runs *r)
{
    struct config_difference *d = xcalloc(1, sizeof *d);
    const int base = first_known(r);
    *k = (struct run_keys){.runs = r->n};
    for (int i = base + 1; base >= 0 && i < r->n; i++)
        if (r->run[i].config)
            compare(k, r, base, i, d);
    fill(k, r, base);
    config_tell_keys(move_up, &(struct sorted){.k = k});
    free(d);
}

void run_keys_release(struct run_keys *k)
{
    for (int i = 0; i < k->n; i++) {
        for (int n = 0; n < k->runs; n++)
            free(k->key[i].value[n]);
        free(k->key[i].value);
    }
    free(k->key);
    *k = (struct run_keys){0};
}
