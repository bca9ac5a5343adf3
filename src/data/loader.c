/* Prepares batches ahead on worker threads; see data.h.
 *
 * A ring of slots, one batch each: batch b goes into slot b % slots. Workers take the next batch number under the lock,
 * as long as its slot is free, and fill the slot without the lock; the reader waits for the slot of the batch it is at.
 * A batch is a pure function of its number, so it does not matter who fills it. The slot that the reader holds is not
 * counted as ahead, hence one slot more than workers * prefetch.
 *
 * Workers that have nothing to do sleep, and waking them costs the reader more than a small batch costs to make: they are woken
 * when as many slots are free as one of them is to keep ahead, and then fill them all. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/process.h"
#include "data/collate.h"
#include "data/pack.h"

struct slot {
    struct batch batch;
    struct collate_order order;
    struct pack pack;
    bool ready;
    struct error error;         /* .status OK: the batch is good */
};

struct loader {
    const struct dataset *data;
    enum split split;
    struct batch_division division;
    struct slot *slots;
    int64_t n_slots, prefetch;
    char *memory;               /* of all batches */
    int64_t wait_ns;

    int n_workers;
    pthread_t *workers;
    pthread_mutex_t lock;       /* guards all below and the ready flags */
    pthread_cond_t filled, freed;
    int numbered;               /* workers that have a number */
    int64_t next_fill;          /* the batch a worker takes next */
    int64_t next_read;          /* the batch the reader asks for next */
    int64_t released;           /* batches below this number have left their slots */
    int under_way;              /* batches that are being filled */
    bool rests;                 /* take no further batches until one is read */
    bool stop;                  /* take no further batches: the loader ends, or one has failed */
};

/* ---- filling ---- */

/* The number of a batch among all of its size, from its number among the loader's own. */
static int64_t global_index(const struct batch_division *v, int64_t index)
{
    const int64_t mine = v->here * v->accumulate, step = index / mine, i = index % mine;
    return (step * v->accumulate + i % v->accumulate) * v->shards + v->first + i / v->accumulate;
}

static void slot_fill(const struct loader *l, struct slot *s, int64_t number, int worker)
{
    const int64_t index = global_index(&l->division, number);
    struct batch *b = &s->batch;
    b->index = index;
    b->worker = worker;
    b->prepare_start_ns = clock_ns();
    s->error.status = OK;
    collate_choose(l->data, index, b->size, &l->division, &s->order);
    if (l->division.pack)
        pack_collate(l->data, l->split, s->order.samples, b, &s->pack, &s->error);
    else
        collate(l->data, l->split, s->order.samples, b, &s->error);
    b->prepare_end_ns = clock_ns();
}

static void *worker_main(void *argument)
{
    struct loader *l = argument;
    process_work_beside("loader");
    pthread_mutex_lock(&l->lock);
    const int number = l->numbered++;
    for (;;) {
        while (!l->stop && (l->rests || l->next_fill >= l->released + l->n_slots))
            pthread_cond_wait(&l->freed, &l->lock);
        if (l->stop)
            break;
        const int64_t index = l->next_fill++;
        struct slot *s = &l->slots[index % l->n_slots];
        l->under_way++;
        pthread_mutex_unlock(&l->lock);
        slot_fill(l, s, index, number);
        pthread_mutex_lock(&l->lock);
        l->under_way--;
        s->ready = true;
        l->stop |= s->error.status != OK;       /* batches before this one are all taken already */
        pthread_cond_signal(&l->filled);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- starting and stopping ---- */

static enum status slots_init(struct loader *l, int64_t size, struct error *err)
{
    int64_t each, bytes;
    l->slots = xcalloc((size_t)l->n_slots, sizeof *l->slots);
    if (collate_bytes(l->data, size, l->division.pack, &each) != OK || __builtin_mul_overflow(each, l->n_slots, &bytes))
        bytes = INT64_MAX;
    l->memory = bytes < INT64_MAX ? malloc((size_t)bytes) : NULL;
    if (!l->memory) {
        error_no_memory(err, "the batches that are prepared ahead", (unsigned long long)bytes);
        return error_add(err, "; try a smaller batch_size, data.workers or data.prefetch");
    }
    for (int64_t i = 0; i < l->n_slots; i++) {
        collate_bind(l->data, &l->slots[i].batch, size, l->division.pack, l->memory + i * each);
        collate_order_init(&l->slots[i].order, l->data, size, &l->division);
        if (!l->division.pack)
            continue;
        pack_init(&l->slots[i].pack, l->data, size);
        l->slots[i].pack.usual = i ? l->slots[0].pack.usual : dataset_rows(l->data, size);
    }
    return OK;
}

/* Workers leave signals to the main thread, but for the faults that belong to the thread that causes them. */
static enum status workers_start(struct loader *l, int workers, struct error *err)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT};
    sigset_t blocked, before;
    int failed = 0;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    l->workers = xcalloc((size_t)workers, sizeof *l->workers);
    while (l->n_workers < workers && !failed) {
        failed = pthread_create(&l->workers[l->n_workers], NULL, worker_main, l);
        l->n_workers += !failed;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(err, CANNOT, "cannot start loader thread %d of %d: %s; set data.workers smaller",
                         l->n_workers + 1, workers, strerror(failed));
    return OK;
}

enum status loader_new(struct loader **out, const struct dataset *d, enum split split, int64_t size, int64_t first,
                       int workers, int prefetch, struct error *err)
{
    return loader_new_divided(out, d, split, size, (struct batch_division){.shards = 1, .here = 1, .accumulate = 1}, first, workers, prefetch, err);
}

enum status loader_new_divided(struct loader **out, const struct dataset *d, enum split split, int64_t size, struct batch_division division,
                               int64_t first, int workers, int prefetch, struct error *err)
{
    struct loader *l = xcalloc(1, sizeof *l);
    l->data = d;
    l->split = split;
    l->division = division;
    l->prefetch = prefetch > 0 ? prefetch : 1;
    l->n_slots = workers * l->prefetch + 1;
    l->next_fill = l->next_read = l->released = first;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->freed, NULL);
    enum status st = slots_init(l, size, err);
    if (st == OK && workers > 0)
        st = workers_start(l, workers, err);
    if (st != OK) {
        loader_free(l);
        return st;
    }
    *out = l;
    return OK;
}

void loader_free(struct loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_workers; i++)
        pthread_join(l->workers[i], NULL);
    pthread_cond_destroy(&l->freed);
    pthread_cond_destroy(&l->filled);
    pthread_mutex_destroy(&l->lock);
    free(l->workers);
    free(l->memory);
    for (int64_t i = 0; l->slots && i < l->n_slots; i++) {
        collate_order_release(&l->slots[i].order);
        pack_release(&l->slots[i].pack);
    }
    free(l->slots);
    free(l);
}

/* ---- reading ---- */

/* Gives the slot of the last batch back to the workers and waits for the next one. */
static struct slot *slot_wait(struct loader *l)
{
    struct slot *s = &l->slots[l->next_read % l->n_slots];
    pthread_mutex_lock(&l->lock);
    if (l->released < l->next_read) {
        l->slots[l->released % l->n_slots].ready = false;
        l->released = l->next_read;
        if (l->released + l->n_slots - l->next_fill >= l->prefetch)
            pthread_cond_broadcast(&l->freed);
    }
    if (l->rests) {
        l->rests = false;
        pthread_cond_broadcast(&l->freed);
    }
    while (!s->ready)
        pthread_cond_wait(&l->filled, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return s;
}

const struct batch *loader_next(struct loader *l, struct error *err)
{
    const int64_t start = clock_ns();
    struct slot *s = l->slots;
    if (l->n_workers > 0)
        s = slot_wait(l);
    else
        slot_fill(l, s, l->next_read, -1);
    l->wait_ns += clock_ns() - start;
    if (s->error.status != OK) {        /* next_read stays, so a further call fails the same way */
        if (err)
            *err = s->error;
        return NULL;
    }
    l->next_read++;
    return &s->batch;
}

int64_t loader_wait_ns(const struct loader *l) { return l->wait_ns; }

int loader_rest(struct loader *l)
{
    pthread_mutex_lock(&l->lock);
    const int ended = l->under_way;
    l->rests = true;
    while (l->under_way > 0)
        pthread_cond_wait(&l->filled, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return ended;
}

int64_t loader_ahead(struct loader *l)
{
    int64_t n = 0;
    pthread_mutex_lock(&l->lock);
    while (n + 1 < l->n_slots && l->slots[(l->next_read + n) % l->n_slots].ready)
        n++;
    pthread_mutex_unlock(&l->lock);
    return n;
}
