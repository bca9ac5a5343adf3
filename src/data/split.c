/* Cuts the stores of a dataset into a training and a validation part and counts the samples of each.
 *
 * Validation is what comes from data.val_path or else the last val_fraction of all tokens. No sample crosses a file or
 * the cut; with samples of one line the cut moves back to the start of a line. */
#include <stdlib.h>

#include "core/arena.h"
#include "data/data_int.h"

enum { FREE_PHASE_WINDOWS = 16 };   /* from so many windows on, one is given up for a free choice of the phase */

static void add_range(struct part *p, const struct store *s, int64_t first, int64_t count)
{
    if (count <= 0)
        return;
    p->ranges = xrealloc(p->ranges, sizeof *p->ranges * (size_t)(p->n_ranges + 1));
    p->ranges[p->n_ranges++] = (struct range){.store = s, .first = first, .count = count};
    p->tokens += count;
}

static int64_t train_tokens(const struct dataset *d, double val_fraction)
{
    int64_t total = 0;
    bool own_val = false;
    for (int i = 0; i < d->n_stores; i++) {
        own_val |= d->stores[i].val;
        total += d->stores[i].val ? 0 : d->stores[i].count;
    }
    return own_val ? total : total - (int64_t)((double)total * val_fraction);
}

static void cut(struct dataset *d, double val_fraction)
{
    int64_t left = train_tokens(d, val_fraction);   /* tokens that still go to the training part */
    for (int i = 0; i < d->n_stores; i++) {
        const struct store *s = &d->stores[i];
        int64_t train = s->val ? 0 : left < s->count ? left : s->count;
        left -= train;
        if (d->samples == SAMPLES_LINES && train > 0 && train < s->count)
            train = lines_start(s, train, d->newline);
        add_range(&d->parts[SPLIT_TRAIN], s, 0, train);
        add_range(&d->parts[SPLIT_VAL], s, train, s->count - train);
    }
}

static void count_windows(struct part *p, int64_t seq, bool shuffled)
{
    for (int i = 0; i < p->n_ranges; i++) {
        struct range *r = &p->ranges[i];
        r->windows = (r->count - 1) / seq;
        if (shuffled && r->windows >= FREE_PHASE_WINDOWS)
            r->windows--;
        const int64_t spare = r->count - 1 - r->windows * seq;
        r->phases = !shuffled ? 1 : spare < seq ? spare + 1 : seq;
        r->before = p->samples;
        p->samples += r->windows;
    }
}

static enum status too_short(const struct dataset *d, enum split split, const struct config *c, struct error *err)
{
    const struct part *p = &d->parts[split];
    const char *name = p->n_ranges ? p->ranges[0].store->name : d->stores[0].name;
    const bool whole = d->trained && !c->data.val_path[0] && c->data.val_fraction <= 0;     /* a model is tried on all of it */
    const char *has = whole ? "has" : "leaves", *use = whole ? "" : split == SPLIT_VAL ? " for validation" : " for training";
    enum data_domain domain;
    const bool is_corpus = d->name ? config_domain(d->name, &domain) : c->data.source == SOURCE_CORPUS;
    const char *advice = is_corpus ? "set a larger data.chars" : "give more data";
    if (split == SPLIT_VAL && !c->data.val_path[0])
        advice = "set a larger data.val_fraction, or 0 for no validation";
    if (d->samples == SAMPLES_LINES)
        return error_set(err, BAD_INPUT,
                         "'%s' %s %lld tokens%s, and no line of text is among them; %s, or set "
                         "data.samples: windows", name, has, (long long)p->tokens, use, advice);
    return error_set(err, BAD_INPUT, "'%s' %s %lld tokens%s, and one sequence of model.seq %lld needs %lld; %s%s", name, has, (long long)p->tokens,
                     use, (long long)d->seq, (long long)d->seq + 1, advice, d->trained ? "" : ", or set a smaller model.seq");
}

enum status split_init(struct dataset *d, const struct config *c, struct error *err)
{
    enum status st = OK;
    cut(d, c->data.val_fraction);
    for (int split = 0; split < 2 && st == OK; split++) {
        struct part *p = &d->parts[split];
        if (d->samples == SAMPLES_LINES)
            st = lines_index(p, d->newline, d->seq, err);
        else
            count_windows(p, d->seq, split == SPLIT_TRAIN && !d->trained);          /* who is only tried sees all of it, whatever it was trained with */
        const bool wanted = split == SPLIT_TRAIN || c->data.val_path[0] || c->data.val_fraction > 0;
        if (st == OK && wanted && p->samples == 0)
            st = too_short(d, (enum split)split, c, err);
    }
    return st;
}

void split_release(struct dataset *d)
{
    for (int split = 0; split < 2; split++) {
        free(d->parts[split].ranges);
        free(d->parts[split].lines);
    }
}
