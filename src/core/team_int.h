/* What the files of a team share: its members, how one waits (team_wait.c), how all meet (team_meet.c), how they help each other (team_help.c). */
#ifndef HONE_CORE_TEAM_INT_H
#define HONE_CORE_TEAM_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/nodes.h"
#include "core/team.h"

enum { CACHE_LINE = 128 };

/* For a run to start, which takes as long as what is between two; or for others in a run. */
enum { WAIT_FOR_RUN, WAIT_IN_RUN, WAITS };

/* Work in pieces that others may take some of. */
struct job {
    piece_fn *fn;
    void *argument;
    _Alignas(CACHE_LINE) _Atomic uint64_t left;     /* its number, the first piece that nobody has, and the end of those */
    _Alignas(CACHE_LINE) _Atomic uint32_t helped;   /* pieces that others have done for this member, of all its jobs so far */
};

struct member {
    struct team *team;
    int index;
    bool helps;                     /* in this run, as the team does */
    team_fn *idle;                  /* what it does while it waits; NULL: nothing, as behind its part of a run, whose argument the caller may take back as soon as all have come */
    _Atomic bool engaged;           /* in a job, its own or another's */
    uint32_t given;                 /* pieces that others have taken of its jobs so far */
    pthread_t thread;
    int64_t patience_ns[WAITS];     /* how long it spins before it sleeps; it learns */
    _Atomic uint64_t spins;         /* so far; written by itself alone */
    _Alignas(CACHE_LINE) _Atomic int cpu;       /* where it was when it last came to a meeting or left one */
    _Atomic uint32_t arrived;       /* how many it has come to */
    struct job job;
};

/* A number that one thread changes and others wait for. */
struct word { _Alignas(CACHE_LINE) _Atomic uint32_t n; };

struct team {
    int members;
    int users;                      /* that have it, where it is shared */
    struct member *list;
    team_fn *fn;
    void *argument;
    bool helps;                     /* members of this run help each other */
    struct team_habits habits;      /* of this run */
    struct nodes *nodes;            /* NULL: threads run where the system lets them */
    const char *root;               /* before /proc */
    int cores;                      /* that it may run on; 0: it has a quota of their time, which it must not waste */
    _Atomic int64_t looked_ns;      /* when somebody has last looked whether more threads want to run than there are cores */
    _Atomic bool crowded;           /* and what it was then */
    bool stopping;
    struct word generation;         /* runs that were started */
    struct word sleepers;           /* that wait for a run, a phase or a helper: a change must wake someone only when this is not 0 */
    /* team_meet.c */
    struct word *groups;            /* how many of a group have come; of members, then of groups, up to one of all */
    struct word phase;              /* meetings that all have come to */
};

/* What a member waits for: that a word is as far as a number. That takes the first member to start a run, others to come to a meeting, or those who help to be done. */
struct awaited {
    _Atomic uint32_t *word;
    uint32_t until;
    _Atomic uint32_t *asleep;       /* says to whoever changes the word that somebody sleeps */
};
void member_wait(struct member *m, const struct awaited *w);
void member_note_cpu(struct member *m);         /* so that others see whether it is in their way */
void word_advance(struct team *t, _Atomic uint32_t *word);      /* by one; whoever sleeps until then is woken */

/* How long a member spins from now on, behind a wait for which it spun and then slept so long; -1: it did not sleep. */
enum { MOST_NS = 500000, LONGEST_NS = 100000000 };      /* of patience; and while there are cores for all, in a run */
int64_t patience_learned(int64_t patience_ns, int64_t slept_ns);

bool team_meet_init(struct team *t);            /* false: no memory */
void team_meet_release(struct team *t);
void member_meet(struct member *m);

struct member *member_self(void);               /* this thread, in the team whose run it is in; NULL: in none */
/* Does a piece of another's work, where there is one to take. Says whether any was left; and whether somebody has gone on with such work since `seen`, which it brings
 * up to date, or this one has. */
enum work { NO_WORK, WORK, WORK_GOES_ON };
enum work member_help(struct member *m, uint64_t *seen);

#endif
