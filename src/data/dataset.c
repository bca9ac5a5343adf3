/* Datasets: opening, asking, and samples by global index; see data.h. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rng.h"
#include "core/setup.h"
#include "data/data_int.h"
#include "data/permute.h"

enum { RANDOM_SAMPLES = 1 << 20 };      /* in an "epoch" of random tokens */

static struct dataset *new_of(int64_t seq, int64_t segments, uint64_t seed)
{
    struct dataset *d = xcalloc(1, sizeof *d);
    assert(seq > 0);
    d->seq = seq;
    d->segments = segments;
    d->newline = -1;
    d->entropy = NAN;
    d->order_key = rng_u64(seed, rng_stream_of("data.order"), 0);
    d->phase_key = rng_u64(seed, rng_stream_of("data.phase"), 0);
    return d;
}

struct dataset *dataset_new(const struct config *c)
{
    struct dataset *d = new_of(c->model.seq, c->model.segments, (uint64_t)c->train.seed);
    d->samples = c->data.samples;
    d->bucket = c->data.bucket;
    d->positions = c->model.given_positions;
    return d;
}

void dataset_free(struct dataset *d)
{
    if (!d)
        return;
    domains_release(d);
    free(d->name);
    for (int i = 0; i < d->n_stores; i++)
        store_release(&d->stores[i]);
    free(d->stores);
    split_release(d);
    tokenizer_release(&d->tokenizer);
    free(d);
}

struct store *dataset_add_store(struct dataset *d)
{
    d->stores = xrealloc(d->stores, sizeof *d->stores * (size_t)(d->n_stores + 1));
    struct store *s = &d->stores[d->n_stores++];
    *s = (struct store){.name = NULL};
    return s;
}

static enum status refuse_vocab(const struct dataset *d, const struct config *c, struct error *err)
{
    const char *what = tokenizer_unit(d->tokenizer.kind);
    const long long has = d->vocab, room = c->model.vocab;
    char where[CONFIG_WHERE_MAX];
    if (d->n_domains)
        return error_set(err, BAD_INPUT, "%s: model.vocab is %lld, and data.domains have %lld %s; set it to %lld, or to 0 to take "
                         "the data's", config_where(c, "model.vocab", where), room, has, what, has);
    return error_set(err, BAD_INPUT, "'%s' has a vocabulary of %lld %s, and model.vocab is %lld; set it to %lld, or to 0 "
                     "to take the data's", d->stores[0].name, has, what, room, has);
}

/* It is known per character. */
static void forget_entropy(struct dataset *d)
{
    d->entropy = NAN;
    for (int i = 0; i < d->n_domains; i++)
        d->domains[i]->entropy = NAN;
}

static enum status source_open(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    static source_fn *const sources[] = {
        [SOURCE_CORPUS] = source_corpus, [SOURCE_TEXT] = source_text, [SOURCE_BIN] = source_bin, [SOURCE_REGIONS] = source_regions,
    };
    const bool is_text = c->data.source == SOURCE_CORPUS || c->data.source == SOURCE_TEXT;
    if (given && given->kind != TOKENIZER_BPE && is_text != (given->kind != TOKENIZER_NONE))
        return error_set(err, BAD_INPUT, "the model's tokens are %s, and data.source %s%s%s%s has %s; give data of the same kind",
                         is_text ? "ids without a text" : "pieces of text", config_word("data.source", (int)c->data.source),
                         *c->data.path ? " '" : "", c->data.path, *c->data.path ? "'" : "", is_text ? "text" : "ids without a text");
    source_fn *const source = c->data.domains.n ? source_domains : sources[c->data.source];
    const enum status st = source(d, c, given, err);
    if (st == OK)
        d->newline = tokenizer_newline(&d->tokenizer);
    if (st == OK && d->tokenizer.kind == TOKENIZER_BPE)
        forget_entropy(d);
    if (st == OK && c->model.vocab > 0 && d->vocab > c->model.vocab)
        return refuse_vocab(d, c, err);
    return st;
}

/* "prose, then code, then 'notes.txt'" */
static void list_domains(const struct dataset *d, char *out, size_t size)
{
    enum data_domain domain;
    size_t used = 0;
    for (int i = 0; i < d->n_domains && used < size; i++) {
        const char *name = d->domains[i]->name, *quote = config_domain(name, &domain) ? "" : "'";
        used += (size_t)snprintf(out + used, size - used, "%s%s%s%s", i ? ", then " : "", quote, name, quote);
    }
}

/* What data.max_chars left out. */
static void describe_cut(struct dataset *d, int64_t max_chars)
{
    const size_t used = strlen(d->description);
    bool cut = d->cut;
    double bytes = d->text_bytes;
    for (int i = 0; i < d->n_domains; i++) {
        cut |= d->domains[i]->cut;
        bytes += d->domains[i]->text_bytes;
    }
    if (cut)
        snprintf(d->description + used, sizeof d->description - used, "; cut: data.max_chars is %lld, and the text has %.1f %s",
                 (long long)max_chars, bytes / (bytes < 1e6 ? 1e3 : 1e6), bytes < 1e6 ? "kB" : "MB");
}

/* "18000 training and 2000 validation tokens", or "18000 tokens" where none are for validation: other data of an evaluation is of no training. */
static void count_tokens(const struct dataset *d, char out[96])
{
    const long long train = (long long)d->parts[SPLIT_TRAIN].tokens, val = (long long)d->parts[SPLIT_VAL].tokens;
    if (val)
        snprintf(out, 96, "%lld training and %lld validation tokens", train, val);
    else
        snprintf(out, 96, "%lld tokens", train);
}

static void describe(struct dataset *d, const struct config *c)
{
    static const char *const domains[] = {
        [DOMAIN_PROSE] = "prose", [DOMAIN_CODE] = "code", [DOMAIN_FORMULAS] = "formulas"};
    char where[CONFIG_PATH_MAX + 64], tokens[96];
    if (d->region) {
        snprintf(d->description, sizeof d->description, "built-in walks on a grid of %d × %d: %lld training and %lld validation samples of %lld to "
                 "%lld tokens", REGION_SIDE, REGION_SIDE, (long long)d->parts[SPLIT_TRAIN].samples, (long long)d->parts[SPLIT_VAL].samples,
                 (long long)d->region + 4, (long long)config_region_longest(d->region));
        return;
    }
    if (d->n_domains)
        list_domains(d, where, sizeof where);
    else if (c->data.source == SOURCE_CORPUS)
        snprintf(where, sizeof where, "built-in %s", domains[c->data.domain]);
    else if (c->data.source == SOURCE_TEXT)
        snprintf(where, sizeof where, "text '%s'", c->data.path);
    else
        snprintf(where, sizeof where, "%d shard%s '%s'", d->n_stores, d->n_stores == 1 ? "" : "s", c->data.path);
    count_tokens(d, tokens);
    snprintf(d->description, sizeof d->description, "%s: %s, vocabulary of %lld %s", where, tokens, (long long)d->vocab, tokenizer_unit(d->tokenizer.kind));
    describe_cut(d, c->data.max_chars);
}

void dataset_warn(struct dataset *d, const char *format, ...)
{
    va_list args;
    if (d->n_warnings == DATA_WARNINGS)
        return;
    va_start(args, format);
    vsnprintf(d->warning[d->n_warnings++], DATA_WARNING, format, args);
    va_end(args);
}

/* Lines that do not fit are cut, and what is cut off is trained on in no epoch. */
static void warn_of_cut_lines(struct dataset *d)
{
    const struct part *p = &d->parts[SPLIT_TRAIN];
    const struct line_counts *n = &p->counts;
    const double percent = p->tokens ? 100 * (double)n->cut_tokens / (double)p->tokens : 0;
    char share[16];
    if (n->cut == 0)
        return;
    snprintf(share, sizeof share, percent < 1 ? "less than 1" : "%.0f", percent);
    dataset_warn(d, "%lld of %lld lines %s longer than model.seq %lld and %s cut: %s %% of the tokens are never seen; %sset data.samples: windows",
                 (long long)n->cut, (long long)n->lines, n->cut == 1 ? "is" : "are", (long long)d->seq, n->cut == 1 ? "is" : "are", share,
                 d->trained ? "" : "raise model.seq, or ");
}

enum status dataset_open(struct dataset **out, const struct config *c, struct error *err)
{
    return dataset_open_for(out, c, NULL, err);
}

/* The one that data.tokenizer names; shards may have theirs beside them. */
static enum status open_tokenizer(struct dataset *d, struct tokenizer *t, const struct config *c, struct error *err)
{
    char folder[CONFIG_PATH_MAX];
    struct bpe *b = NULL;
    const char *path = c->data.tokenizer, *slash = strrchr(c->data.path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - c->data.path) : 1, slash ? c->data.path : ".");
    if (!*path && c->data.source == SOURCE_BIN && bpe_is_there(folder))
        path = folder;
    enum status st = *path ? bpe_open(&b, path, err) : OK;
    if (st != OK && path == c->data.tokenizer)
        st = config_blame_path(c, "data.tokenizer", path, err);
    if (b && path == c->data.tokenizer)
        beside_warn(d, c, b, folder);
    if (b)
        tokenizer_init_bpe(t, b);
    return st;
}

enum status dataset_open_for(struct dataset **out, const struct config *c, const struct tokenizer *given, struct error *err)
{
    struct dataset *d = dataset_new(c);
    struct tokenizer named = {.kind = TOKENIZER_NONE};
    enum status st = given ? OK : open_tokenizer(d, &named, c, err);
    d->trained = given != NULL;
    if (st == OK)
        st = source_open(d, c, given ? given : named.kind == TOKENIZER_BPE ? &named : NULL, err);
    if (st == OK && given)
        st = beside_check(d, c, given, err);
    tokenizer_release(&named);
    if (st == OK)
        st = d->n_domains ? domains_split(d, c, err) : d->region ? OK : split_init(d, c, err);
    setup_done();
    if (st != OK) {
        dataset_free(d);
        return st;
    }
    describe(d, c);
    warn_of_cut_lines(d);
    if (!given)
        overlap_warn(d, c);
    *out = d;
    return OK;
}

enum status dataset_open_random(struct dataset **out, int64_t vocab, int64_t seq, int64_t segments, uint64_t seed,
                                struct error *err)
{
    if (vocab < 1 || vocab > INT32_MAX)
        return error_set(err, BAD_INPUT, "a vocabulary of %lld random tokens; it must be 1 to %d", (long long)vocab,
                         INT32_MAX);
    struct dataset *d = new_of(seq, segments, seed);
    d->random = true;
    d->vocab = vocab;
    d->entropy = log((double)vocab);
    for (int split = 0; split < 2; split++) {
        d->parts[split].samples = RANDOM_SAMPLES;
        d->parts[split].tokens = RANDOM_SAMPLES * seq;
    }
    snprintf(d->description, sizeof d->description, "random tokens below %lld", (long long)vocab);
    const enum status st = tokenizer_init(&d->tokenizer, TOKENIZER_NONE, NULL, (int32_t)vocab, err);
    *out = d;
    return st;
}

int64_t dataset_vocab(const struct dataset *d) { return d->vocab; }
int64_t dataset_tokens(const struct dataset *d, enum split split) { return d->parts[split].tokens; }
int64_t dataset_samples(const struct dataset *d, enum split split) { return d->parts[split].samples; }
double dataset_entropy(const struct dataset *d) { return d->entropy; }
const struct tokenizer *dataset_tokenizer(const struct dataset *d) { return &d->tokenizer; }
const char *dataset_describe(const struct dataset *d) { return d->description; }
const char *dataset_warning(const struct dataset *d, int i) { return i < d->n_warnings ? d->warning[i] : NULL; }

/* Token k of random sample i is a number of its own, and target k is token k + 1. */
static void random_sample(const struct dataset *d, enum split split, int64_t i, int32_t *tokens, int32_t *targets)
{
    const uint64_t stream = (uint64_t)i << 1 | (uint64_t)split;
    for (int64_t k = 0; k <= d->seq; k += 4) {
        const struct rng_block b = rng_block(d->order_key, stream, (uint64_t)k);
        for (int64_t j = k; j < k + 4 && j <= d->seq; j++) {
            const int32_t id = (int32_t)((uint64_t)b.x[j - k] * (uint64_t)d->vocab >> 32);
            if (j < d->seq)
                tokens[j] = id;
            if (j > 0)
                targets[j - 1] = id;
        }
    }
}

void data_segments(int32_t *segments, const int32_t *tokens, int64_t n, int64_t seq, int64_t of, int32_t newline)
{
    int64_t count = 0;
    for (int64_t i = 0; i < seq; i++) {
        if (newline < 0)
            count = i >= (seq + 1) / 2;
        segments[i] = i < n && of > 0 ? (int32_t)(count % of) : 0;
        count += newline >= 0 && tokens[i] == newline;
    }
}

/* Padding is at the end. */
static void fill_rest(const struct dataset *d, struct sample *s)
{
    int64_t n = 0;
    while (n < d->seq && s->targets[n] >= 0)
        n++;
    s->length = n > 0 ? n : 1;
    if (s->segments)
        data_segments(s->segments, s->tokens, n, d->seq, d->segments, d->newline);
}

enum status dataset_sample(const struct dataset *d, enum split split, int64_t index, int32_t *tokens, int32_t *targets,
                           int32_t *segments, struct error *err)
{
    return dataset_fill(d, split, index, &(struct sample){.tokens = tokens, .targets = targets, .segments = segments}, err);
}

/* Where training sample `index` stands in the data. */
static int64_t place_of(const struct dataset *d, int64_t index)
{
    const int64_t samples = d->parts[SPLIT_TRAIN].samples;
    return (int64_t)permute_index(d->order_key, (uint64_t)(index / samples), (uint64_t)samples, (uint64_t)(index % samples));
}

int64_t dataset_length(const struct dataset *d, int64_t index)
{
    if (d->region)
        return regions_length(d, place_of(d, index));
    return d->samples == SAMPLES_LINES && !d->random ? lines_length(d, place_of(d, index)) : d->seq;
}

int dataset_lengths(const struct dataset *d, int64_t lengths[LENGTHS_MAX])
{
    const int64_t least = d->region ? d->region + 4 : 1;
    int n = 0;
    for (int64_t at = d->bucket; at > 0 && at < d->seq && n < LENGTHS_MAX - 1; at += d->bucket)
        if (at >= least)
            lengths[n++] = at;
    lengths[n++] = d->seq;
    return n;
}

enum status dataset_fill(const struct dataset *d, enum split split, int64_t index, struct sample *out, struct error *err)
{
    const int64_t samples = d->parts[split].samples;
    enum status st = OK;
    if (samples == 0)
        return error_set(err, BAD_INPUT, "there is no validation data; set data.val_fraction or data.val_path");
    if (d->n_domains)
        return domains_sample(d, split, index, out, err);
    const int64_t i = split == SPLIT_TRAIN && !d->random ? place_of(d, index) : index % samples;
    if (d->region) {
        regions_sample(d, split, i, out);
        return OK;
    }
    if (d->random)
        random_sample(d, split, index, out->tokens, out->targets);
    else if (d->samples == SAMPLES_LINES)
        st = lines_sample(d, split, i, out->tokens, out->targets, err);
    else
        st = windows_sample(d, split, index / samples, i, out->tokens, out->targets, err);
    if (st == OK)
        fill_rest(d, out);
    return st;
}
