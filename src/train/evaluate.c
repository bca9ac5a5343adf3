/* The mean loss of a forward program over samples of a dataset. */
#include <stdlib.h>

#include "core/arena.h"
#include "train/train_int.h"

/* Samples beyond the last one, which a last batch has to be full, are those from the beginning again: their targets do not count. */
static void leave_out_repeats(const struct batch *b, int64_t samples)
{
    for (int64_t i = 0; i < b->size; i++)
        for (int64_t k = 0; b->index * b->size + i >= samples && k < b->seq; k++) {
            b->targets[i * b->seq + k] = -1;
            if (b->types)
                b->types[i * b->seq + k] = -1;
        }
}

/* Of the text that a token stands for: marks between texts have a spelling, but no text was made of it. */
static double text_bytes(const struct tokenizer *t, int32_t id)
{
    char text[TOKEN_TEXT_MAX];
    if (t->kind == TOKENIZER_BYTE)
        return 1;
    return t->kind == TOKENIZER_BPE && bpe_is_mark(t->bpe, id) ? 0 : (double)tokenizer_decode(t, id, text);
}

static double bytes_of(const struct batch *b, const struct tokenizer *t)
{
    double bytes = 0;
    for (int64_t i = 0; i < b->size * b->seq; i++)
        bytes += b->targets[i] < 0 ? 0 : text_bytes(t, b->targets[i]);
    return bytes;
}

/* What a batch adds to the sum of losses, and to the count of targets. */
struct batch_loss { double sum, count; };

static enum status evaluate_batch(const struct lengths *programs, const struct dataset *d, const struct evaluation *how, struct loader *l,
                                  struct batch_loss *made, double *bytes, struct error *err)
{
    const struct batch *b = loader_next(l, err);
    if (!b)
        return err->status;
    struct exec *e = lengths_find(programs, b->seq);
    const struct program *p = exec_program(e);
    leave_out_repeats(b, dataset_samples(d, how->split));
    if (how->bytes && how->bytes->kind != TOKENIZER_NONE)
        *bytes += bytes_of(b, how->bytes);
    batch_upload(e, b);
    exec_run(e, PHASE_DATA, PHASE_FORWARD);
    made->count = exec_scalar(e, p->count);
    made->sum = exec_scalar(e, p->loss) * made->count;
    return exec_status(e, err);
}

/* Batches are added up in their order, whichever rank has run them: `all` (ranks, each + 1), of which the last tells who wants to stop. */
static void add_up(const struct batch_loss *all, int64_t batches, int64_t each, int64_t ranks, struct evaluated *out)
{
    double sum = 0;
    for (int64_t i = 0; i < batches; i++) {
        const struct batch_loss *b = &all[i % ranks * (each + 1) + i / ranks];
        sum += b->sum;
        out->tokens += b->count;
    }
    for (int64_t k = 0; k < ranks; k++)
        out->stopped |= all[k * (each + 1) + each].count > 0;
    out->loss = sum / (out->tokens > 0 ? out->tokens : 1);
}

enum status evaluate_samples(const struct lengths *programs, const struct dataset *d, const struct evaluation *how, struct evaluated *out,
                             struct error *err)
{
    const int64_t ranks = dist_size(how->ranks), rank = dist_rank(how->ranks), each = (how->batches + ranks - 1) / ranks;
    struct loader *l;
    *out = (struct evaluated){0};
    enum status st = loader_new_divided(&l, d, how->split, how->batch_size, (struct batch_division){.shards = ranks, .first = rank, .here = 1, .accumulate = 1}, 0, how->workers, 1, err);
    if (st != OK)
        return st;
    struct batch_loss *mine = xcalloc((size_t)each + 1, sizeof *mine), *all = xcalloc((size_t)((each + 1) * ranks), sizeof *all);
    exec_run(programs->longest, PHASE_SETUP, PHASE_SETUP);      /* parameters may have been written since, and it may read copies of them */
    for (int64_t i = 0; i < each && i * ranks + rank < how->batches && st == OK && !(how->stop && *how->stop); i++) {
        st = evaluate_batch(programs, d, how, l, &mine[i], &out->bytes, err);
        if (how->progress && st == OK)
            how->progress(how->context, i + 1);
    }
    mine[each].count = how->stop && *how->stop;
    if (st == OK)
        st = dist_gather(how->ranks, mine, all, (size_t)(each + 1) * sizeof *mine, err);
    if (st == OK)
        add_up(all, how->batches, each, ranks, out);
    loader_free(l);
    free(mine);
    free(all);
    return st;
}

int64_t evaluation_batches(const struct dataset *d, enum split split, int64_t batch_size, int64_t most)
{
    const int64_t samples = dataset_samples(d, split), all = samples / batch_size + (samples % batch_size > 0);
    return all < most ? all : most;
}

enum status model_run_evaluate(struct model_run *r, const volatile sig_atomic_t *stop, double *losses, struct error *err)
{
    const int n = dataset_domains(r->dataset);
    struct dist *ranks = ranks_of(&r->config);
    enum status st = OK;
    for (int i = 0; i < n && st == OK && !(dist_size(ranks) > 1 ? r->stopping : stop && *stop); i++) {
        const struct dataset *d = dataset_domain(r->dataset, i);
        const int64_t size = r->config.eval.batch_size;
        const struct evaluation how = {.split = SPLIT_VAL, .batch_size = size, .stop = stop, .ranks = ranks,
                                       .batches = evaluation_batches(d, SPLIT_VAL, size, r->config.eval.batches)};
        struct evaluated made;
        st = evaluate_samples(&r->eval_lengths, d, &how, &made, err);
        losses[i] = made.loss;
        r->stopping |= made.stopped;
    }
    return st;
}
