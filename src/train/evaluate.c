/* The mean loss of a forward program over samples of a dataset. */
#include "train/train_int.h"

/* Samples beyond the last one are those from the beginning again: their targets do not count. */
static void leave_out_repeats(const struct batch *b, int64_t samples)
{
    for (int64_t i = 0; i < b->size; i++)
        for (int64_t k = 0; b->index * b->size + i >= samples && k < b->seq; k++)
            b->targets[i * b->seq + k] = -1;
}

static double bytes_of(const struct batch *b, const struct tokenizer *t)
{
    char text[16];
    double bytes = 0;
    for (int64_t i = 0; i < b->size * b->seq; i++)
        bytes += b->targets[i] < 0 ? 0 : t->kind == TOKENIZER_BYTE ? 1 : (double)tokenizer_decode(t, b->targets[i], text);
    return bytes;
}

enum status evaluate_samples(struct exec *e, const struct dataset *d, const struct evaluation *how, struct evaluated *out,
                             struct error *err)
{
    const struct program *p = exec_program(e);
    const int64_t samples = dataset_samples(d, how->split);
    double sum = 0;
    struct loader *l;
    *out = (struct evaluated){0};
    enum status st = loader_new(&l, d, how->split, how->batch_size, 0, how->workers, 1, err);
    if (st != OK)
        return st;
    exec_run(e, PHASE_SETUP, PHASE_SETUP);      /* parameters may have been written since, and it may read copies of them */
    for (int64_t i = 0; i < how->batches && st == OK && !(how->stop && *how->stop); i++) {
        const struct batch *b = loader_next(l, err);
        if (!b) {
            st = err->status;
            break;
        }
        if (how->once)
            leave_out_repeats(b, samples);
        if (how->bytes && how->bytes->kind != TOKENIZER_NONE)
            out->bytes += bytes_of(b, how->bytes);
        batch_upload(e, b);
        exec_run(e, PHASE_DATA, PHASE_FORWARD);
        const double n = exec_scalar(e, p->count);
        sum += exec_scalar(e, p->loss) * n;
        out->tokens += n;
        st = exec_status(e, err);
        if (how->progress)
            how->progress(how->context, i + 1);
    }
    loader_free(l);
    out->loss = sum / (out->tokens > 0 ? out->tokens : 1);
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
    enum status st = OK;
    for (int i = 0; i < n && st == OK && !(stop && *stop); i++) {
        const struct dataset *d = dataset_domain(r->dataset, i);
        const int64_t size = r->config.eval.batch_size;
        const struct evaluation how = {.split = SPLIT_VAL, .batch_size = size, .stop = stop,
                                       .batches = evaluation_batches(d, SPLIT_VAL, size, r->config.eval.batches)};
        struct evaluated made;
        st = evaluate_samples(r->eval, d, &how, &made, err);
        losses[i] = made.loss;
    }
    return st;
}
