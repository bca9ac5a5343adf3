/* Inside the room: the group's thread, what it is asked to do, and how it hears of the others. */
#ifndef HONE_DIST_DIST_INT_H
#define HONE_DIST_DIST_INT_H

#include <pthread.h>

#include "dist/dist.h"

struct mpi_module;
enum status dist_load_mpi(const struct mpi_module **out, struct error *err);

enum job_kind { JOB_SUM, JOB_SCATTER, JOB_SLICES, JOB_GATHER, JOB_BROADCAST, JOB_COLLECT, JOB_DEAL, JOB_PROBE };
struct job {
    enum job_kind kind;
    void *data;                     /* sum, scatter: floats; slices: the first value; gather: (size, bytes); else bytes */
    const void *mine;               /* gather, collect */
    void *own;                      /* deal */
    int64_t n;                      /* floats or bytes */
    const int64_t *cuts;            /* scatter, slices: size + 1, in floats */
    const struct dist_part *parts;  /* collect, deal: of every rank */
    const struct program *program;  /* slices: the values of an op, and where they are */
    const struct op *op;
    void *const *memory;
    struct probe *probe;
    int64_t began_ns, ended_ns;     /* on the thread */
    bool ok;
};
/* Some swaps of as many floats with the rank whose number differs in this bit; it adds what it gets, as sums do. */
struct probe { int bit, rounds; double seconds; };      /* seconds: of the swap in the middle; 0: there is no such rank */
enum { JOBS = 256 };                /* started and not waited for, at most */

/* What ranks tell each other beside the data: rank 0 hears all, and all hear rank 0. */
enum note_kind { NOTE_ALIVE, NOTE_GIVES_UP, NOTE_FAILED };
enum { WHERE_MAX = 96 };
struct note {
    int32_t kind, rank, status, lost;
    int64_t step;
    char where[WHERE_MAX];
    char text[1024];
};
struct sent_note {                  /* one that may still be on its way */
    struct sent_note *next;
    void *request;
    int to;
    struct note note;
};

struct peer {
    char host[64], name[128];
    int32_t process;
    int64_t heard_ns, step;
    char where[WHERE_MAX];
};

struct dist {
    struct comm comm;               /* first: a comm is the group */
    struct transport *t;
    transport_open_fn *open;
    void *context;
    struct peer *peers;             /* (size) */
    int64_t patience_ns, beat_ns;
    pthread_t thread;
    pthread_mutex_t lock;           /* guards all up to the thread's own */
    pthread_cond_t work, changed;
    struct job jobs[JOBS];
    int64_t pushed, done;           /* jobs so far */
    bool opened, closing;
    struct error failure;           /* .status OK: it works */
    int lost;                       /* the rank that is; -1: none */
    bool own, leaving;              /* the failure is this rank's; and the others are still to be told */
    pthread_mutex_t looking;        /* held while comm.at is looked at */
    _Atomic int64_t step;
    int64_t wait_ns;                /* of the caller */
    int64_t asked_ns;               /* when it first asked for one of the sums that are under way; 0: not yet */
    struct dist_bytes bytes;
    bool leading;                   /* the others do what this one does */
    _Atomic int64_t sum_ns;         /* that the thread has spent on sums */
    /* the thread's own */
    float *scratch;
    int64_t scratch_n;
    float *pieces;                  /* of an exchange */
    void **under_way;               /* messages of one exchange */
    int under_way_n, under_way_cap;
    struct note heard;              /* is received into */
    void *hearing;
    struct sent_note *sent;
    int64_t beat_at_ns;
    bool told;                      /* rank 0: everybody knows of the failure */
};

enum status group_ask(struct dist *d, struct job j, struct error *err);     /* has the thread do it, and waits */

/* ---- notes.c: on the thread ---- */

void notes_open(struct dist *d);
void notes_close(struct dist *d);
/* Sends and hears what is due; call it often. False: the group has failed. */
bool notes_beat(struct dist *d);
/* The group fails, if it has not yet: the first reason counts. */
void group_fail(struct dist *d, int lost, const struct error *why);
bool group_works(struct dist *d);

/* ---- exchange.c: on the thread ---- */

/* Waits for messages; false: one failed (NULL: at once), or the group has. What is left then is dropped. */
bool carried_all(struct dist *d, void **messages, int n);
/* Sends `mine` (n) to a rank, and gets from it `theirs` (m), or adds it to what is there; they lie apart. False: as above. */
bool exchange_numbers(struct dist *d, int with, const float *mine, int64_t n, float *theirs, int64_t m, bool adds);

/* ---- sums.c: on the thread ---- */

bool job_run(struct dist *d, struct job *j);
bool broadcast_bytes(struct dist *d, char *data, int64_t n);        /* from rank 0 */

/* ---- slices.c: on the thread ---- */

bool slices_gather(struct dist *d, const struct job *j);

#endif
