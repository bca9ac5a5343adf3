/* Finds the processes below one in /proc; see watch_family.h. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/watch_family.h"
#include "core/arena.h"

struct process {
    pid_t pid, parent;
    unsigned long long started;
};

/* False: it is not there, or has ended and nobody has asked how. */
static bool look(struct process *p, pid_t pid)
{
    char path[64], text[1024], state = 'X';
    long parent;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "re");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    const char *behind = strrchr(text, ')');    /* a name may have spaces and brackets */
    *p = (struct process){.pid = pid};
    if (!behind || sscanf(behind + 1, " %c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state, &parent, &p->started) != 3)
        return false;
    p->parent = (pid_t)parent;
    return state != 'Z' && state != 'X';
}

static bool holds(const struct family *f, pid_t pid)
{
    for (int i = 0; i < f->n; i++)
        if (f->list[i].pid == pid)
            return true;
    return false;
}

static bool lives(const struct relative *r)
{
    struct process p;
    return look(&p, r->pid) && p.started == r->started;
}

/* A number that somebody else has by now makes no child. */
static bool is_child(const struct family *f, const struct process *p)
{
    for (int i = 0; i < f->n; i++)
        if (f->list[i].pid == p->parent)
            return lives(&f->list[i]);
    return false;
}

static void add(struct family *f, const struct process *p)
{
    f->list = xrealloc(f->list, (size_t)(f->n + 1) * sizeof *f->list);
    f->list[f->n++] = (struct relative){p->pid, p->started};
}

/* True: there is one more. Parents may have higher numbers than their children, so one look does not find all. */
static bool find_more(struct family *f)
{
    const int before = f->n;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct process p;
        const long pid = strtol(e->d_name, NULL, 10);
        if (pid > 0 && pid < INT_MAX && !holds(f, (pid_t)pid) && look(&p, (pid_t)pid) && is_child(f, &p))
            add(f, &p);
    }
    if (dir)
        closedir(dir);
    return f->n > before;
}

void family_find(struct family *f, pid_t head)
{
    struct process p;
    if (!holds(f, head) && look(&p, head))
        add(f, &p);
    while (find_more(f))
        ;
}

void family_signal(const struct family *f, int signal)
{
    for (int i = 0; i < f->n; i++)
        if (lives(&f->list[i]))
            kill(f->list[i].pid, signal);
}

bool family_lives(const struct family *f)
{
    for (int i = 0; i < f->n; i++)
        if (lives(&f->list[i]))
            return true;
    return false;
}

void family_release(struct family *f)
{
    free(f->list);
    *f = (struct family){0};
}
