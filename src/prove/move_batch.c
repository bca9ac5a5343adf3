/* batch-size: the same samples per update in micro-batches of another size. Larger ones share what does not grow with the batch;
 * smaller ones stay in cache. What an update sees is the same, so the learning rate needs no change. */
#include "passes/passes.h"
#include "prove/moves.h"

/* Where both sizes were timed before, that says it. */
static bool measured_size(double *speedup, const struct situation *now, int64_t size)
{
    const struct batch_point *a = now->sweep ? batch_sweep_find(now->sweep, now->m.config.train.batch_size) : NULL;
    const struct batch_point *b = a ? batch_sweep_find(now->sweep, size) : NULL;
    if (b)
        *speedup = b->samples_per_s / a->samples_per_s;
    return b != NULL;
}

/* Expected speed-up of micro-batches of `size` samples; 0: they do not divide the update, or do not fit in memory. */
static enum status predict_size(double *speedup, struct config *next, const struct situation *now, int64_t size, struct error *err)
{
    const struct config *c = &now->m.config;
    const int64_t samples = c->train.batch_size * c->train.accumulate;
    struct program *then;
    *speedup = 0;
    *next = *c;
    if (size < 1 || size == c->train.batch_size || samples % size)
        return OK;
    next->train.batch_size = size;
    next->train.accumulate = samples / size;
    if (!c->eval.batch_size)
        next->eval.batch_size = c->train.batch_size;            /* evaluation stays what it was */
    const enum status st = train_step_program(&then, next, next->train.steps, NULL, err);
    if (st != OK)
        return st;
    const bool fits = then->memory_limit <= 0 || pass_planned_bytes(then) <= then->memory_limit;
    if (fits && !measured_size(speedup, now, size))
        *speedup = predict_step_us(&now->p, now->m.program, now->m.program) / predict_step_us(&now->p, now->m.program, then);
    program_free(then);
    return OK;
}

/* Takes it, where it is expected to be faster than what is proposed so far. */
static enum status better_size(struct proposal *out, const struct situation *now, int64_t size, struct error *err)
{
    struct config next;
    double speedup;
    const enum status st = predict_size(&speedup, &next, now, size, err);
    if (st != OK || speedup <= out->predicted)
        return st;
    *out = (struct proposal){.next = next, .places = 1, .predicted = speedup};
    snprintf(out->change, sizeof out->change, "train.batch_size: %lld, train.accumulate: %lld", (long long)next.train.batch_size,
             (long long)next.train.accumulate);
    return OK;
}

enum status propose_batch(struct proposal *out, const struct situation *now, int pass, struct error *err)
{
    const struct config *c = &now->m.config;
    enum status st = OK;
    (void)pass;
    *out = (struct proposal){.next = *c, .predicted = 1};
    if (c->model.dropout > 0 || now->m.n_ranks > 1)     /* it would fall on other samples, and the proof could not compare them; ranks divide a batch */
        return OK;
    if (now->sweep && now->sweep->spot >= 0)            /* a larger update was asked for, to be made in batches of this size */
        return better_size(out, now, now->sweep->points[now->sweep->spot].batch, err);
    for (int shift = -3; shift <= 3 && st == OK; shift++) {
        const int64_t size = shift < 0 ? c->train.batch_size >> -shift : c->train.batch_size << shift;
        if (shift >= 0 || size << -shift == c->train.batch_size)
            st = better_size(out, now, size, err);
    }
    return st;
}
