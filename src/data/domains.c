/* A dataset of several domains: each is one of its own, with the vocabulary of all, and they are learned one after the other. Sample
 * i of the training part lies in stage i / stage_samples, and is the sample of that domain with the number that is left: so it is
 * the same for whoever asks, also in mid-stage. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "data/corpus.h"
#include "data/data_int.h"

int dataset_domains(const struct dataset *d) { return d->n_domains ? d->n_domains : 1; }

const struct dataset *dataset_domain(const struct dataset *d, int i) { return d->n_domains ? d->domains[i] : d; }

const char *dataset_name(const struct dataset *d) { return d->name; }

static enum status get_text(struct text *t, struct dataset *d, const struct config *c, const struct tokenizer *given,
                            struct error *err)
{
    enum data_domain domain;
    if (!config_domain(d->name, &domain))
        return text_read(t, d->name, &c->data, text_is_bytes(&c->data, given), err);
    d->entropy = source_corpus_entropy(domain, &c->data);
    const enum status st = text_generate(t, domain, &c->data, err);
    t->name = d->name;
    return st;
}

enum status source_domains(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    struct text texts[CONFIG_LIST_MAX] = {{.bytes = NULL}};
    const int n = (int)c->data.domains.n;
    enum status st = OK;
    d->domains = xcalloc((size_t)n, sizeof *d->domains);
    for (; d->n_domains < n && st == OK; d->n_domains++) {
        struct dataset *one = dataset_new(c);
        d->domains[d->n_domains] = one;
        one->name = xstrdup(config_name(&c->data.domains, d->n_domains));
        st = get_text(&texts[d->n_domains], one, c, given, err);
        texts[d->n_domains].to = one;
    }
    if (st == OK)
        st = texts_tokenize(texts, n, &c->data, given, err);
    for (int i = 0; i < n; i++)
        text_release(&texts[i]);
    const struct tokenizer *v = &d->domains[0]->tokenizer;
    if (st == OK)
        st = tokenizer_copy(&d->tokenizer, v, err);
    d->vocab = d->domains[0]->vocab;
    return st;
}

/* Samples of a stage that are too many to count are never reached. */
static int64_t samples_of(const struct config_train *t)
{
    int64_t batches, samples;
    if (__builtin_mul_overflow(t->steps, t->accumulate, &batches) || __builtin_mul_overflow(batches, t->batch_size, &samples) ||
        samples < 1)
        return INT64_MAX;
    return samples;
}

static void add_counts(struct line_counts *to, const struct line_counts *more)
{
    to->lines += more->lines;
    to->cut += more->cut;
    to->cut_tokens += more->cut_tokens;
}

enum status domains_split(struct dataset *d, const struct config *c, struct error *err)
{
    enum status st = OK;
    d->stage_samples = samples_of(&c->train);
    for (int i = 0; i < d->n_domains && st == OK; i++) {
        struct dataset *one = d->domains[i];
        one->newline = d->newline;
        st = split_init(one, c, err);
        for (int split = 0; split < 2; split++) {
            d->parts[split].tokens += one->parts[split].tokens;
            d->parts[split].samples += one->parts[split].samples;
            add_counts(&d->parts[split].counts, &one->parts[split].counts);
        }
    }
    return st;
}

void domains_release(struct dataset *d)
{
    for (int i = 0; i < d->n_domains; i++)
        dataset_free(d->domains[i]);
    free(d->domains);
}

static int stage_of(const struct dataset *d, int64_t index)
{
    const int64_t stage = index / d->stage_samples;
    return stage < d->n_domains ? (int)stage : d->n_domains - 1;
}

enum status domains_sample(const struct dataset *d, enum split split, int64_t index, struct sample *out, struct error *err)
{
    int at = 0;
    if (split == SPLIT_TRAIN) {
        at = stage_of(d, index);
        index -= at * d->stage_samples;
    } else {                                    /* their validation parts, one behind the other */
        index %= d->parts[split].samples;
        for (; index >= d->domains[at]->parts[split].samples; at++)
            index -= d->domains[at]->parts[split].samples;
    }
    return dataset_fill(d->domains[at], split, index, out, err);
}
