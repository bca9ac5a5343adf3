/* loader: when the step waits for its batch, more workers prepare batches and more of them wait ready. */
#include "prove/moves.h"

enum { WORKERS_MOST = 16, PREFETCH_MOST = 64 };

enum status propose_loader(struct proposal *out, const struct situation *now, int pass, struct error *err)
{
    const struct config *c = &now->m.config;
    const struct finding *f = situation_finding(now, "data-stall");
    (void)pass;
    (void)err;
    *out = (struct proposal){.next = *c, .predicted = 1};
    if (!f || c->data.workers >= WORKERS_MOST || c->data.prefetch >= PREFETCH_MOST)
        return OK;
    struct config_data *d = &out->next.data;
    d->workers = c->data.workers ? 2 * c->data.workers : 2;
    d->prefetch = 2 * (c->data.prefetch > d->workers ? c->data.prefetch : d->workers);
    out->places = 1;
    out->predicted = f->speedup;
    snprintf(out->change, sizeof out->change, "data.workers: %lld, data.prefetch: %lld", (long long)d->workers,
             (long long)d->prefetch);
    return OK;
}
