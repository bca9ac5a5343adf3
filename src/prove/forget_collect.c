/* Reads all runs of a comparison. What cannot be used is left out, and a warning says what and why. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "prove/forget_int.h"

static __attribute__((format(printf, 2, 3))) void warn(struct forget *f, const char *format, ...)
{
    const int most = (int)(sizeof f->warnings / sizeof *f->warnings);
    va_list args;
    va_start(args, format);
    if (f->n_warnings < most)
        vsnprintf(f->warnings[f->n_warnings++], FORGET_WORDS, format, args);
    va_end(args);
}

static bool same_domains(const struct forget_run *a, const struct forget_run *b)
{
    if (a->n_domains != b->n_domains)
        return false;
    for (int d = 0; d < a->n_domains; d++)
        if (strcmp(a->domains[d], b->domains[d]))
            return false;
    return true;
}

static struct forget_run *run_at(const struct forget *f, int64_t i) { return &f->configs[i / f->seeds].runs[i % f->seeds]; }

static int64_t count_alike(const struct forget *f, const struct forget_run *r)
{
    int64_t n = 0;
    for (int64_t i = 0; i < f->n_configs * f->seeds; i++)
        n += run_at(f, i)->done && same_domains(run_at(f, i), r);
    return n;
}

/* Runs are compared that have the domains which most of them have. */
static void leave_out_others(struct forget *f)
{
    const struct forget_run *most = NULL;
    int64_t alike = 0;
    for (int64_t i = 0; i < f->n_configs * f->seeds; i++) {
        const struct forget_run *r = run_at(f, i);
        const int64_t n = r->done && !(most && same_domains(r, most)) ? count_alike(f, r) : 0;
        if (n > alike)
            most = r, alike = n;
    }
    for (int64_t i = 0; i < f->n_configs * f->seeds; i++) {
        struct forget_run *r = run_at(f, i);
        if (!r->done || same_domains(r, most))
            continue;
        r->done = false;
        warn(f, "'%s' is left out: its domains are not those of '%s'", r->folder, most->folder);
    }
}

static enum status read_run(struct forget *f, const struct forget_config *c, struct forget_run *r, struct error *err)
{
    struct error why;
    char text[FORGET_WORDS];
    enum status st = forget_read_losses(r, &why);
    if (st != OK && why.no_memory) {
        *err = why;
        return st;
    }
    if (st != OK) {
        r->n_domains = r->n_stages = 0;
        warn(f, "%s seed %lld is left out: %s", c->name, (long long)r->seed, why.text);
        return OK;
    }
    if (!r->done) {
        warn(f, "'%s' is left out: %d of its %d stages are done", r->folder, r->n_stages, r->n_domains);
        return OK;
    }
    if (!c->nodes)
        return OK;
    st = forget_read_nodes(r, &f->arena, text, err);
    if (*text)
        warn(f, "%s", text);
    if (st == OK && r->nodes && r->nodes != c->nodes)
        warn(f, "'%s/nodes.jsonl' is of %d nodes, and %s has %d", r->folder, r->nodes, c->name, c->nodes);
    return st;
}

enum status forget_collect(struct forget *f, struct error *err)
{
    enum status st = OK;
    f->n_warnings = 0;
    for (int i = 0; i < f->n_configs && st == OK; i++)
        for (int s = 0; s < f->configs[i].n_runs && st == OK; s++)
            st = read_run(f, &f->configs[i], &f->configs[i].runs[s], err);
    if (st == OK)
        leave_out_others(f);
    return st;
}
