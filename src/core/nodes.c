/* Reads /sys/devices/system/node; see nodes.h. */
#include "core/nodes.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8 * sizeof(unsigned long), TEXT = 8192, PATH = 4096 };

bool cpus_has(const struct cpus *c, int cpu) { return c->bits[cpu / WORD] >> cpu % WORD & 1; }

static void put(struct cpus *c, int cpu) { c->bits[cpu / WORD] |= 1ul << cpu % WORD; }

/* A number below NODES_CPUS; -1: there is none. */
static int number(const char **at)
{
    int n = 0, digits = 0;
    for (; **at >= '0' && **at <= '9' && n < NODES_CPUS; ++*at, digits++)
        n = 10 * n + (**at - '0');
    return digits && n < NODES_CPUS ? n : -1;
}

bool cpus_parse(struct cpus *out, const char *text)
{
    *out = (struct cpus){0};
    while (*text && *text != '\n') {
        const int lo = number(&text);
        const int hi = lo >= 0 && *text == '-' ? (text++, number(&text)) : lo;
        if (lo < 0 || hi < lo || (*text && *text != ',' && *text != '\n'))
            return false;
        for (int i = lo; i <= hi; i++)
            put(out, i);
        text += *text == ',';
    }
    return true;
}

static bool read_list(struct cpus *out, const char *path)
{
    char text[TEXT] = "";
    FILE *f = fopen(path, "re");
    const bool good = f && fgets(text, sizeof text, f) && cpus_parse(out, text);
    if (f)
        fclose(f);
    return good;
}

static int count(const struct cpus *c)
{
    int n = 0;
    for (size_t i = 0; i < sizeof c->bits / sizeof *c->bits; i++)
        n += __builtin_popcountl(c->bits[i]);
    return n;
}

/* Those of a node that are among the usable ones, where there are any. */
static void add_node(struct nodes *to, const struct cpus *usable, const char *root, int node)
{
    char path[PATH];
    struct cpus *c = &to->of[to->n];
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", root, node);
    if (!read_list(c, path))
        return;
    for (size_t i = 0; i < sizeof c->bits / sizeof *c->bits; i++)
        c->bits[i] &= usable->bits[i];
    const int n = count(c);
    if (n > 0)
        to->first[++to->n] = to->cpus += n;
}

void nodes_read(struct nodes *out, const char *root)
{
    char path[PATH];
    struct cpus online, usable = {0};
    memset(out, 0, sizeof *out);
    snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
    if (sched_getaffinity(0, sizeof usable, (cpu_set_t *)&usable) == 0 && read_list(&online, path))
        for (int i = 0; i < NODES_CPUS && out->n < NODES_MOST; i++)
            if (cpus_has(&online, i))
                add_node(out, &usable, root, i);
    if (out->n == 0 || out->cpus != count(&usable)) {       /* a node that could not be read: then nothing is known */
        out->n = 1;
        out->cpus = out->first[1] = count(&usable);
        out->of[0] = usable;
    }
}

int nodes_of_thread(const struct nodes *n, int thread)
{
    int node = 0;
    while (node + 1 < n->n && thread >= n->first[node + 1])
        node++;
    return node;
}

void nodes_bind(const struct nodes *n, int node)
{
    (void)!sched_setaffinity(0, sizeof n->of[node], (const cpu_set_t *)&n->of[node]);       /* a matter of speed alone */
}
