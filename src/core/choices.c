/* The remembered choices: {"version": 1, "choices": {KEY: {"variant": NAME, "us": X, "first_us": Y}, ...}}; see choices.h. Names
 * are kept, not numbers: a list of variants may change between versions. */
#include "core/choices.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cache.h"
#include "core/choices_int.h"
#include "core/json_memory.h"

enum { VERSION = 1, ENTRIES_MOST = 1000 };

static const char file_name[] = "choices.json";

/* What this process has used, as it stands in the file. */
static pthread_mutex_t memo_lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *memo;

/* ---- entries ---- */

static bool sound_text(const char *s) { return s && *s && strlen(s) < CHOICE_TEXT_MOST; }

static bool sound_times(double us, double first_us) { return us > 0 && first_us >= us && isfinite(first_us); }

static bool sound_entry(const char *key, const json_t *e)
{
    const json_t *us = json_object_get(e, "us"), *first = json_object_get(e, "first_us");
    return sound_text(key) && sound_text(json_string_value(json_object_get(e, "variant"))) && json_is_number(us) &&
           json_is_number(first) && sound_times(json_number_value(us), json_number_value(first));
}

static json_t *entry(const struct choice *c)
{
    return json_pack("{s:s, s:f, s:f}", "variant", c->variants[c->variant], "us", c->us, "first_us", c->first_us);
}

static int variant_named(const struct choice *c, const char *name)
{
    for (int i = 0; c->variants[i]; i++)
        if (strcmp(c->variants[i], name) == 0)
            return i;
    return -1;
}

/* Only what is sound, and a variant that there is. */
static bool look_up(struct choice *c, const json_t *entries)
{
    const json_t *e = json_object_get(entries, c->key);
    if (!sound_entry(c->key, e))
        return false;
    const int variant = variant_named(c, json_string_value(json_object_get(e, "variant")));
    if (variant < 0)
        return false;
    c->variant = variant;
    c->us = json_number_value(json_object_get(e, "us"));
    c->first_us = json_number_value(json_object_get(e, "first_us"));
    return true;
}

/* ---- text ---- */

void choices_parse(struct choice *list, int n, const char *text, size_t size)
{
    json_t *root = cache_parse(text, size, VERSION);
    for (int i = 0; i < n; i++)
        look_up(&list[i], json_object_get(root, "choices"));
    json_decref(root);
}

static bool add_list(json_t *to, const struct choice *list, int n)
{
    bool good = true;
    for (int i = 0; good && i < n; i++)
        good = sound_text(list[i].key) && sound_times(list[i].us, list[i].first_us) &&
               json_object_set_new(to, list[i].key, entry(&list[i])) == 0;
    return good;
}

/* Objects keep the order of what is put into them: what was used last comes first. `only` with these keys; NULL: all. */
static void add_others(json_t *to, json_t *from, const json_t *only)
{
    const char *key;
    json_t *e;
    json_object_foreach(from, key, e) {
        if (json_object_size(to) >= ENTRIES_MOST)
            break;
        if (sound_entry(key, e) && !json_object_get(to, key) && (!only || json_object_get(only, key)))
            json_object_set(to, key, e);
    }
}

/* The list, then what else has been used of the old ones, then the others. */
static char *print(const struct choice *list, int n, json_t *old, const json_t *used)
{
    json_t *kept = json_object();
    if (!add_list(kept, list, n)) {
        json_decref(kept);
        return NULL;
    }
    add_others(kept, json_object_get(old, "choices"), used);
    add_others(kept, json_object_get(old, "choices"), NULL);
    json_t *root = json_pack("{s:i, s:o}", "version", VERSION, "choices", kept);
    char *text = json_memory_dump(root, JSON_INDENT(1));
    json_decref(root);
    return text;
}

char *choices_print(const struct choice *list, int n, const char *text, size_t size)
{
    json_t *old = cache_parse(text, size, VERSION);
    char *out = print(list, n, old, NULL);
    json_decref(old);
    return out;
}

/* ---- remembering ---- */

static void keep_in_memo(const struct choice *c)
{
    if (!memo)
        memo = json_object();
    json_object_set_new(memo, c->key, entry(c));
}

/* The file's document, for json_decref; NULL: there is none. */
static json_t *load_file(void)
{
    char *text;
    size_t size;
    if (!cache_read(file_name, &text, &size))
        return NULL;
    json_t *root = cache_parse(text, size, VERSION);
    free(text);
    return root;
}

/* With the file's lock held: what was remembered meanwhile stays. */
static enum status merge(struct choice *list, int n, struct error *err)
{
    json_t *old = load_file();
    for (int i = 0; i < n; i++)
        if (!look_up(&list[i], memo))
            look_up(&list[i], json_object_get(old, "choices"));
    char *text = print(list, n, old, memo);
    json_decref(old);
    if (!text)
        return error_set(err, BAD_INPUT, "choices are not remembered: their times must be above 0 and finite, and the machine's "
                                         "name UTF-8");
    const enum status st = cache_replace(file_name, text, err);
    free(text);
    return st;
}

static enum status rewrite_file(struct choice *list, int n, struct error *err)
{
    const int lock = cache_lock();
    const enum status st = merge(list, n, err);
    if (lock >= 0)
        close(lock);
    return st;
}

static bool use_noted;          /* by this process */

/* Whether something that this process uses lies in the half of a full file that falls out first. */
static bool is_fading(json_t *entries)
{
    const char *key;
    json_t *e;
    int at = 0;
    json_object_foreach(entries, key, e)
        if (at++ >= ENTRIES_MOST / 2 && json_object_get(memo, key))
            return true;
    return false;
}

/* Use is noted by rewriting the file, and only where it matters: that brings what was used to the front, and it must have come half
 * the way back before the file is written for it again. */
static int recall_from_file(struct choice *list, int n)
{
    json_t *root = load_file(), *entries = json_object_get(root, "choices");
    int missing = 0;
    for (int i = 0; i < n; i++) {
        if (list[i].variant >= 0)
            continue;
        if (look_up(&list[i], entries))
            keep_in_memo(&list[i]);
        else
            missing++;
    }
    if (!use_noted && is_fading(entries)) {
        use_noted = true;                   /* once is enough, whatever number of choices a process uses */
        rewrite_file(NULL, 0, NULL);        /* no harm if it cannot be written */
    }
    json_decref(root);
    return missing;
}

int choices_recall(struct choice *list, int n)
{
    int missing = 0;
    pthread_mutex_lock(&memo_lock);
    for (int i = 0; i < n; i++) {
        list[i].variant = -1;
        missing += !look_up(&list[i], memo);
    }
    if (missing)
        missing = recall_from_file(list, n);
    pthread_mutex_unlock(&memo_lock);
    return missing;
}

enum status choices_remember(struct choice *list, int n, struct error *err)
{
    pthread_mutex_lock(&memo_lock);
    const enum status st = rewrite_file(list, n, err);
    for (int i = 0; st == OK && i < n; i++)
        keep_in_memo(&list[i]);
    pthread_mutex_unlock(&memo_lock);
    return st;
}

void choices_settle(const struct choice *list, int n)
{
    pthread_mutex_lock(&memo_lock);
    for (int i = 0; i < n; i++)
        if (list[i].variant < 0)
            keep_in_memo(&(struct choice){list[i].key, list[i].variants, 0, 1, 1});
    pthread_mutex_unlock(&memo_lock);
}

void choices_forget(void)
{
    pthread_mutex_lock(&memo_lock);
    json_decref(memo);
    memo = NULL;
    use_noted = false;
    pthread_mutex_unlock(&memo_lock);
}

/* ---- watching ---- */

static choices_watch_fn *watcher;
static void *watcher_context;

void choices_watch(choices_watch_fn *watch, void *context)
{
    watcher = watch;
    watcher_context = context;
}

void choices_tell(int done, int total)
{
    if (watcher)
        watcher(watcher_context, done, total);
}
