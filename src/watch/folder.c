/* What the ranks of a watched program left in their folder. */
#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "watch/watch.h"

enum { MOST_RANKS = 4096, BYTES_MOST = 1 << 26 };

/* N of "rankN"; -1: it is something else. */
static int rank_named(const char *name)
{
    char again[32], *end;
    if (strncmp(name, "rank", 4))
        return -1;
    const long rank = strtol(name + 4, &end, 10);
    snprintf(again, sizeof again, "rank%ld", rank);
    return !*end && rank >= 0 && rank < INT_MAX && !strcmp(again, name) ? (int)rank : -1;
}

static int compare_ints(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

/* Numbers of the folders of ranks, smallest first. */
static int list_ranks(const char *folder, int *ranks)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && n < MOST_RANKS && (e = readdir(dir));)
        if (rank_named(e->d_name) >= 0)
            ranks[n++] = rank_named(e->d_name);
    if (dir)
        closedir(dir);
    qsort(ranks, (size_t)n, sizeof *ranks, compare_ints);
    return n;
}

/* A rank that has begun and written nothing yet is passed over. */
static enum status read_rank(struct watched *w, struct arena *a, const char *folder, int rank, struct error *err)
{
    char path[PATH_MAX], *text;
    size_t size;
    struct json_t *trial;
    snprintf(path, sizeof path, "%s/rank%d/watch.json", folder, rank);
    if (!fs_exists(path))
        return OK;
    enum status st = fs_read(path, &text, &size, BYTES_MOST, err);
    if (st != OK)
        return st;
    st = watched_parse(&w->ranks[w->n], &trial, a, path, text, size, err);
    free(text);
    if (st != OK)
        return st;
    w->ranks[w->n++].rank = rank;               /* its folder's */
    if (w->n == 1)
        w->trial = trial;
    else
        json_decref(trial);
    return OK;
}

enum status watched_read(struct watched *out, struct arena *a, const char *folder, struct error *err)
{
    int *ranks = xcalloc(MOST_RANKS, sizeof *ranks);
    const int n = list_ranks(folder, ranks);
    enum status st = OK;
    *out = (struct watched){.ranks = arena_alloc(a, (size_t)(n + 1) * sizeof *out->ranks)};
    for (int i = 0; st == OK && i < n; i++)
        st = read_rank(out, a, folder, ranks[i], err);
    free(ranks);
    if (st != OK)
        watched_release(out);
    return st;
}

void watched_release(struct watched *w)
{
    json_decref(w->trial);
    *w = (struct watched){0};
}

bool watched_all_finished(const struct watched *w)
{
    int finished = 0;
    for (int i = 0; i < w->n; i++)
        finished += w->ranks[i].finished;
    return w->n && finished >= w->ranks[0].ranks_here && finished == w->n;
}

static enum watched_reach reach_of(const char *folder, const char *process)
{
    static const char *const words[] = {[REACHED_PYTHON] = "python\n", [REACHED_TORCH] = "torch\n", [REACHED_STEP] = "step\n"};
    char path[PATH_MAX], text[16] = "";
    snprintf(path, sizeof path, "%s/processes/%s", folder, process);
    FILE *f = fopen(path, "re");
    const bool got = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    for (int i = REACHED_STEP; got && i > REACHED_PYTHON; i--)
        if (!strcmp(text, words[i]))
            return (enum watched_reach)i;
    return REACHED_PYTHON;
}

enum watched_reach watched_reach(const char *folder)
{
    char path[PATH_MAX];
    enum watched_reach farthest = REACHED_NOTHING;
    snprintf(path, sizeof path, "%s/processes", folder);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        const enum watched_reach one = reach_of(folder, e->d_name);
        farthest = one > farthest ? one : farthest;
    }
    if (dir)
        closedir(dir);
    return farthest;
}
