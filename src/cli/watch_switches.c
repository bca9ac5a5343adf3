/* The names of switches that `hone watch --try` knows. The table is the hook's: a file of lines `NAME CLASS`. */
#include "cli/watch_switches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/watch_folder.h"
#include "core/arena.h"
#include "core/fs.h"

enum { LONGEST = 64 << 10 };            /* of the table */

/* The first word of the next line that has one; NULL: there is none. *text goes on behind the line. */
static const char *next_name(const char **text, size_t *size)
{
    while (**text) {
        const char *line = *text;
        *text += strcspn(line, "\n");
        *text += **text == '\n';
        *size = strcspn(line, " \n");
        if (*size && *line != '#')
            return line;
    }
    return NULL;
}

static bool is_name(const char *table, const char *word, size_t n)
{
    size_t size;
    for (const char *name; (name = next_name(&table, &size));)
        if (size == n && !memcmp(name, word, n))
            return true;
    return false;
}

static enum status refuse(const char *table, const char *word, size_t n, struct error *err)
{
    struct arena a = {0};
    const char *names = "";
    size_t size;
    for (const char *name; (name = next_name(&table, &size));)
        names = arena_printf(&a, "%s%s%.*s", names, *names ? ", " : "", (int)size, name);
    const enum status st = error_set(err, BAD_INPUT, "there is no switch '%.*s'; there are %s", (int)n, word, names);
    arena_release(&a);
    return st;
}

enum status watch_check_switches(const char *given, struct error *err)
{
    char hook[PATH_MAX], path[PATH_MAX + 40], *table;
    size_t size;
    enum status st = watch_find_hook(hook, err);
    if (st != OK)
        return st;
    snprintf(path, sizeof path, "%s/hone_hook/trial/switches.txt", hook);
    st = fs_read(path, &table, &size, LONGEST, err);
    if (st != OK)
        return st;
    for (const char *word = given; st == OK && *word;) {
        const size_t n = strcspn(word, ",");
        if (n && !is_name(table, word, n))
            st = refuse(table, word, n, err);
        word += n + (word[n] == ',');
    }
    free(table);
    return st;
}
