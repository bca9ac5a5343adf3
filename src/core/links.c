/* The cache file of links: {"version": 1, "entries": [...]}; see links.h. It is whatever lies there: nothing in it is believed before it is
 * checked. */
#include "core/links.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cache.h"

enum { VERSION = 1, ENTRIES_MOST = 64 };

static const char file_name[] = "links.json";

static bool is_known(const struct rank_link *l) { return l->gb_per_s > 0; }

static bool read_link(struct rank_link *to, const json_t *j)
{
    *to = (struct rank_link){json_number_value(json_object_get(j, "us")), json_number_value(json_object_get(j, "gb_per_s"))};
    return json_is_null(j) || (isfinite(to->us) && to->us >= 0 && isfinite(to->gb_per_s) && is_known(to));
}

static bool read_entry(struct links *l, const json_t *j)
{
    const char *machine = json_string_value(json_object_get(j, "machine"));
    const json_int_t ranks = json_integer_value(json_object_get(j, "ranks")), machines = json_integer_value(json_object_get(j, "machines"));
    if (!machine || !*machine || strlen(machine) >= sizeof l->machine || ranks < 2 || ranks > 1 << 24 || machines < 1 || machines > ranks)
        return false;
    *l = (struct links){.ranks = (int)ranks, .machines = (int)machines};
    strcpy(l->machine, machine);
    return read_link(&l->within, json_object_get(j, "within")) && read_link(&l->between, json_object_get(j, "between"));
}

static json_t *link_json(const struct rank_link *l)
{
    return is_known(l) ? json_pack("{s:f, s:f}", "us", l->us, "gb_per_s", l->gb_per_s) : json_null();
}

static json_t *entry(const struct links *l)
{
    return json_pack("{s:s, s:i, s:i, s:o, s:o}", "machine", l->machine, "ranks", l->ranks, "machines", l->machines, "within",
                     link_json(&l->within), "between", link_json(&l->between));
}

static bool find(struct links *out, const json_t *entries, const char *machine)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        struct links l;
        if (read_entry(&l, json_array_get(entries, i)) && !strcmp(l.machine, machine)) {
            *out = l;
            return true;
        }
    }
    return false;
}

bool links_recall(struct links *out, const char *machine)
{
    char *text;
    size_t size;
    if (!cache_read(file_name, &text, &size))
        return false;
    json_t *root = cache_parse(text, size, VERSION);
    const bool found = find(out, json_object_get(root, "entries"), machine);
    json_decref(root);
    free(text);
    return found;
}

/* The text of the file with l in it, for free(); the newest entry first. */
static char *merged(const struct links *l, const json_t *entries)
{
    struct links mine = *l, old;
    json_t *kept = json_array();
    if (find(&old, entries, l->machine)) {
        mine.within = is_known(&l->within) ? l->within : old.within;
        mine.between = is_known(&l->between) ? l->between : old.between;
    }
    json_array_append_new(kept, entry(&mine));
    for (size_t i = 0; i < json_array_size(entries) && json_array_size(kept) < ENTRIES_MOST; i++)
        if (read_entry(&old, json_array_get(entries, i)) && strcmp(old.machine, l->machine))
            json_array_append_new(kept, entry(&old));
    json_t *root = json_pack("{s:i, s:o}", "version", VERSION, "entries", kept);
    char *text = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    return text;
}

enum status links_remember(const struct links *l, struct error *err)
{
    const int lock = cache_lock();
    char *old = NULL, *text;
    size_t size = 0;
    json_t *root = cache_read(file_name, &old, &size) ? cache_parse(old, size, VERSION) : NULL;
    text = merged(l, json_object_get(root, "entries"));
    const enum status st = text ? cache_replace(file_name, text, err) : error_set(err, CANNOT, "out of memory for '%s'", file_name);
    json_decref(root);
    free(old);
    free(text);
    if (lock >= 0)
        close(lock);
    return st;
}
