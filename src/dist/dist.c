/* The group: opening it, what it is asked to do, and the thread that does it. */
#include "dist/dist.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/subnormal.h"
#include "dist/dist_int.h"
#include "dist/module.h"

static const double PATIENCE_S = 20;        /* so that a lost rank is named within 30 s */
static const int64_t BEAT_NS = 500000000;

/* ---- the thread ---- */

/* Jobs in their order; a beat in between. */
static void work(struct dist *d)
{
    pthread_mutex_lock(&d->lock);
    while (!d->closing || d->done < d->pushed) {
        if (d->done == d->pushed) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            const int64_t ns = until.tv_nsec + d->beat_ns / 2;
            until.tv_sec += ns / 1000000000;
            until.tv_nsec = ns % 1000000000;
            pthread_cond_timedwait(&d->work, &d->lock, &until);
            pthread_mutex_unlock(&d->lock);
            notes_beat(d);
            pthread_mutex_lock(&d->lock);
            continue;
        }
        struct job *j = &d->jobs[d->done % JOBS];
        pthread_mutex_unlock(&d->lock);
        const int64_t start = j->began_ns = clock_ns();
        const bool ok = job_run(d, j);
        j->ended_ns = clock_ns();
        if (j->kind == JOB_SUM || j->kind == JOB_SCATTER || j->kind == JOB_SLICES)
            atomic_fetch_add(&d->sum_ns, j->ended_ns - start);
        if (!ok && group_works(d)) {
            struct error why;
            error_set(&why, CANNOT, "messages between ranks fail, and MPI does not say why");
            group_fail(d, -1, &why);
        }
        pthread_mutex_lock(&d->lock);
        j->ok = ok;
        d->done++;
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
}

struct who { char host[64]; int32_t process; };

/* Everybody's name, before anybody is missed. */
static bool meet(struct dist *d)
{
    struct who mine = {.process = (int32_t)getpid()}, *all = xcalloc((size_t)d->comm.size, sizeof *all);
    gethostname(mine.host, sizeof mine.host - 1);
    struct job j = {.kind = JOB_GATHER, .mine = &mine, .data = all, .n = sizeof mine};
    const bool ok = job_run(d, &j);
    for (int r = 0; ok && r < d->comm.size; r++) {
        struct peer *p = &d->peers[r];
        snprintf(p->host, sizeof p->host, "%s", all[r].host);
        snprintf(p->name, sizeof p->name, "rank %d (%s, process %d)", r, all[r].host, (int)all[r].process);
    }
    free(all);
    return ok;
}

static void open_transport(struct dist *d)
{
    struct error err = {.status = OK};
    const enum status st = d->open(&d->t, d->context, &err);
    if (st == OK) {
        d->comm.rank = d->t->rank;
        d->comm.size = d->t->size;
        d->peers = xcalloc((size_t)d->comm.size, sizeof *d->peers);
        for (int r = 0; r < d->comm.size; r++) {
            d->peers[r].step = -1;
            snprintf(d->peers[r].name, sizeof d->peers[r].name, "rank %d", r);
        }
        notes_open(d);
        if (!meet(d) && group_works(d))
            error_set(&err, CANNOT, "the ranks did not meet: messages between them fail");
    }
    if (err.status != OK)
        group_fail(d, -1, &err);
    pthread_mutex_lock(&d->lock);
    d->opened = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* A sleep between two looks is short, and else the kernel makes it twice as long. */
static void sleep_exactly(void)
{
#ifdef PR_SET_TIMERSLACK
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
#endif
}

static void *thread_main(void *argument)
{
    struct dist *d = argument;
    subnormals_flush();                     /* sums are those of kernels */
    sleep_exactly();
    open_transport(d);
    if (!d->t)
        return NULL;
    work(d);
    if (!group_works(d)) {
        d->beat_at_ns = 0;
        notes_beat(d);                      /* last words */
    }
    notes_close(d);
    d->t->close(d->t, group_works(d));
    return NULL;
}

/* ---- opening and closing ---- */

static void group_free(struct dist *d)
{
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->looking);
    pthread_cond_destroy(&d->work);
    pthread_cond_destroy(&d->changed);
    free(d->peers);
    free(d->scratch);
    free(d->pieces);
    free(d->under_way);
    free(d);
}

/* Signals are the main thread's. */
static int start_thread(struct dist *d)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int failed = pthread_create(&d->thread, NULL, thread_main, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void comm_start(struct comm *c, float *data, int64_t n);
static bool comm_wait(struct comm *c, const float *data);
static void comm_scatter(struct comm *c, float *data, const int64_t *cuts);
static void comm_gather(struct comm *c, const struct program *p, const struct op *op, void *const *memory);
static bool comm_gathered(struct comm *c, const float *first);
static enum status comm_status(struct comm *c, struct error *err) { return dist_status((struct dist *)c, err); }
static enum status comm_share(struct comm *c, void *data, size_t bytes, struct error *err) { return dist_broadcast((struct dist *)c, data, bytes, err); }

enum status dist_open_over(struct dist **out, transport_open_fn *open, void *context, double patience_s, struct error *err)
{
    struct dist *d = xcalloc(1, sizeof *d);
    d->comm = (struct comm){.size = 1, .start = comm_start, .scatter = comm_scatter, .wait = comm_wait, .gather = comm_gather,
                            .gathered = comm_gathered, .status = comm_status, .share = comm_share};
    d->open = open;
    d->context = context;
    d->lost = -1;
    d->step = -1;
    d->patience_ns = (int64_t)(patience_s * 1e9);
    d->beat_ns = d->patience_ns / 8 < BEAT_NS ? d->patience_ns / 8 : BEAT_NS;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->looking, NULL);
    pthread_cond_init(&d->work, NULL);
    pthread_cond_init(&d->changed, NULL);
    const int failed = start_thread(d);
    if (failed) {
        group_free(d);
        return error_set(err, CANNOT, "cannot start the thread that talks to other ranks: %s", strerror(failed));
    }
    pthread_mutex_lock(&d->lock);
    while (!d->opened)
        pthread_cond_wait(&d->changed, &d->lock);
    const struct error why = d->failure;
    pthread_mutex_unlock(&d->lock);
    if (why.status == OK) {
        *out = d;
        return OK;
    }
    if (err)
        *err = why;
    dist_close(d);
    return why.status;
}

static double patience(void)
{
    const char *text = getenv("HONE_RANKS_PATIENCE");
    const double s = text ? atof(text) : 0;
    return s >= 1 && s < 1e6 ? s : PATIENCE_S;
}

/* MPI would end the process, with words on how to build Slurm. (PMI_RANK is another way to tell, and is not srun's here: dist_start_read.) */
static bool are_strangers(const struct dist_start *s) { return s->ranks > 1 && !strcmp(s->by, "srun") && !getenv("PMIX_RANK"); }

enum status dist_open(struct dist **out, bool asked, struct error *err)
{
    const struct dist_start started = dist_start_read();
    const struct mpi_module *m;
    *out = NULL;
    if (!asked && started.ranks == 1)
        return OK;
    if (are_strangers(&started))
        return error_set(err, CANNOT, "srun started %d ranks, and told none of them of the others; start them with srun --mpi=pmix", started.ranks);
    enum status st = dist_load_mpi(&m, err);
    if (st != OK && started.ranks > 1 && err) {
        const struct error why = *err;
        return error_set(err, why.status, "%s started %d ranks, and %.900s", started.by, started.ranks, why.text);
    }
    if (st == OK)
        st = dist_open_over(out, m->open, NULL, patience(), err);
    if (st == OK && dist_size(*out) != started.ranks) {
        st = error_set(err, CANNOT, "%s started %d ranks, and MPI sees %d; %s", started.by ? started.by : "nothing", started.ranks,
                       dist_size(*out), "with Slurm try srun --mpi=pmix");
        dist_close(*out);
        *out = NULL;
    }
    return st;
}

void dist_close(struct dist *d)
{
    char all = 0, *list = d ? xcalloc((size_t)d->comm.size, 1) : NULL;
    if (!d)
        return;
    if (d->t)
        dist_gather(d, &all, list, 1, NULL);            /* nobody leaves while another is at work */
    pthread_mutex_lock(&d->lock);
    d->closing = true;
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    free(list);
    group_free(d);
}

/* ---- asking ---- */

struct dist *dist_of(struct comm *c) { return (struct dist *)c; }
int dist_rank(const struct dist *d) { return d ? d->comm.rank : 0; }
int dist_size(const struct dist *d) { return d ? d->comm.size : 1; }
const char *dist_name(const struct dist *d, int rank) { return d ? d->peers[rank].name : "rank 0"; }
const char *dist_host(const struct dist *d, int rank) { return d ? d->peers[rank].host : "this machine"; }
struct comm *dist_comm(struct dist *d) { return d ? &d->comm : NULL; }
void dist_set_leading(struct dist *d, bool leads) { d->leading = leads; }
bool dist_is_leading(const struct dist *d) { return d && d->leading; }
int64_t dist_wait_ns(const struct dist *d) { return d ? d->wait_ns : 0; }
struct dist_bytes dist_sum_bytes(const struct dist *d) { return d ? d->bytes : (struct dist_bytes){0, 0}; }
int64_t dist_sum_ns(struct dist *d) { return d ? atomic_load(&d->sum_ns) : 0; }

void dist_at_step(struct dist *d, int64_t step)
{
    if (d)
        atomic_store(&d->step, step);
}

void dist_forget_op(struct dist *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->looking);
    atomic_store(&d->comm.at, NULL);
    pthread_mutex_unlock(&d->looking);
}

enum status dist_status(struct dist *d, struct error *err)
{
    if (!d)
        return OK;
    pthread_mutex_lock(&d->lock);
    const enum status st = d->failure.status;
    if (st != OK && err)
        *err = d->failure;
    pthread_mutex_unlock(&d->lock);
    return st;
}

void dist_give_up(struct dist *d, const struct error *why)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    if (d->failure.status == OK) {
        d->failure = *why;
        d->own = d->leaving = true;
    }
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->lock);
}

bool dist_tells(struct dist *d)
{
    if (!d)
        return true;
    pthread_mutex_lock(&d->lock);
    const bool tells = d->comm.rank == (d->lost == 0) || d->own;
    pthread_mutex_unlock(&d->lock);
    return tells;
}

bool dist_gave_up(struct dist *d)
{
    if (!d)
        return false;
    pthread_mutex_lock(&d->lock);
    const bool own = d->own;
    pthread_mutex_unlock(&d->lock);
    return own;
}

/* ---- jobs ---- */

/* Returns the number of the job. */
static int64_t push(struct dist *d, struct job j)
{
    pthread_mutex_lock(&d->lock);
    while (d->pushed - d->done >= JOBS)
        pthread_cond_wait(&d->changed, &d->lock);
    const int64_t number = d->pushed++;
    d->jobs[number % JOBS] = j;
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->lock);
    return number;
}

static bool wait_for(struct dist *d, int64_t number)
{
    pthread_mutex_lock(&d->lock);
    while (d->done <= number)
        pthread_cond_wait(&d->changed, &d->lock);
    const bool ok = d->jobs[number % JOBS].ok;
    pthread_mutex_unlock(&d->lock);
    return ok;
}

static void push_sum(struct dist *d, struct job j)
{
    d->asked_ns = 0;
    push(d, j);
}

static void comm_start(struct comm *c, float *data, int64_t n)
{
    push_sum((struct dist *)c, (struct job){.kind = JOB_SUM, .data = data, .n = n});
}

static int64_t newest_with(struct dist *d, const float *data)
{
    pthread_mutex_lock(&d->lock);
    int64_t number = d->pushed - 1;
    while (number >= 0 && number > d->pushed - JOBS && d->jobs[number % JOBS].data != data)
        number--;
    const bool found = number >= 0 && d->jobs[number % JOBS].data == data;
    pthread_mutex_unlock(&d->lock);
    return found ? number : -1;
}

/* Of a sum that is done: as much is hidden as its time had passed when the first one was asked for. */
static void count_bytes(struct dist *d, int64_t number)
{
    pthread_mutex_lock(&d->lock);
    const struct job j = d->jobs[number % JOBS];
    pthread_mutex_unlock(&d->lock);
    const double bytes = (double)j.n * sizeof(float), took = (double)(j.ended_ns - j.began_ns), before = (double)(d->asked_ns - j.began_ns);
    d->bytes.all += bytes;
    d->bytes.hidden += before <= 0 ? 0 : before >= took ? bytes : bytes * before / took;
}

/* Jobs run in their order: one that is not in the list any more is done. */
static bool wait_for_newest(struct dist *d, int64_t number) { return number >= 0 ? wait_for(d, number) : group_works(d); }

static bool comm_wait(struct comm *c, const float *data)
{
    struct dist *d = (struct dist *)c;
    const int64_t start = clock_ns(), number = newest_with(d, data);
    d->asked_ns = d->asked_ns ? d->asked_ns : start;
    const bool ok = wait_for_newest(d, number);
    if (ok && number >= 0)
        count_bytes(d, number);
    d->wait_ns += clock_ns() - start;
    return ok;
}

static void comm_scatter(struct comm *c, float *data, const int64_t *cuts)
{
    push_sum((struct dist *)c, (struct job){.kind = JOB_SCATTER, .data = data, .n = cuts[c->size], .cuts = cuts});
}

static void comm_gather(struct comm *c, const struct program *p, const struct op *op, void *const *memory)
{
    push((struct dist *)c, (struct job){.kind = JOB_SLICES, .data = memory[0], .cuts = op->attrs.cuts, .program = p, .op = op, .memory = memory});
}

static bool comm_gathered(struct comm *c, const float *first)
{
    struct dist *d = (struct dist *)c;
    const int64_t start = clock_ns(), number = newest_with(d, first);
    const bool ok = wait_for_newest(d, number);
    d->wait_ns += clock_ns() - start;
    return ok;
}

enum status group_ask(struct dist *d, struct job j, struct error *err)
{
    return wait_for(d, push(d, j)) ? OK : dist_status(d, err);
}

enum status dist_gather(struct dist *d, const void *mine, void *all, size_t bytes, struct error *err)
{
    if (!d) {
        memcpy(all, mine, bytes);
        return OK;
    }
    return group_ask(d, (struct job){.kind = JOB_GATHER, .mine = mine, .data = all, .n = (int64_t)bytes}, err);
}

enum status dist_broadcast(struct dist *d, void *data, size_t bytes, struct error *err)
{
    return d ? group_ask(d, (struct job){.kind = JOB_BROADCAST, .data = data, .n = (int64_t)bytes}, err) : OK;
}

enum status dist_collect(struct dist *d, const void *mine, void *all, const struct dist_part *parts, struct error *err)
{
    return group_ask(d, (struct job){.kind = JOB_COLLECT, .mine = mine, .data = all, .parts = parts}, err);
}

enum status dist_deal(struct dist *d, const void *all, void *mine, const struct dist_part *parts, struct error *err)
{
    return group_ask(d, (struct job){.kind = JOB_DEAL, .mine = all, .own = mine, .parts = parts}, err);
}

enum status dist_agree(struct dist *d, enum status st, struct error *err)
{
    if (!d || dist_status(d, err) != OK)
        return d ? err->status : st;
    struct error mine = st == OK ? (struct error){.status = OK} : *err, *all = xcalloc((size_t)d->comm.size, sizeof *all);
    struct error why;
    enum status agreed = dist_gather(d, &mine, all, sizeof mine, &why);
    int r = 0;
    while (agreed == OK && r < d->comm.size - 1 && all[r].status == OK)
        r++;
    if (agreed != OK)
        *err = why;
    else if ((agreed = all[r].status) != OK && r > 0) {
        error_set(err, agreed, "%s: %.900s", dist_name(d, r), all[r].text);
        err->stopped = all[r].stopped;
    } else if (agreed != OK)
        *err = all[r];
    free(all);
    return agreed;
}
