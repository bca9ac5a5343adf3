/* What the files of a team share: its members, how one waits (team_wait.c), how all meet (team_meet.c). */
#ifndef HONE_CORE_TEAM_INT_H
#define HONE_CORE_TEAM_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/nodes.h"
#include "core/team.h"

enum { CACHE_LINE = 128, MOST_SPINS = 4000 };

struct member {
    struct team *team;
    int index;
    pthread_t thread;
    int most_spins;                 /* before it sleeps; it learns */
    _Atomic uint64_t spins;         /* so far; written by itself alone */
    _Alignas(CACHE_LINE) _Atomic int cpu;       /* where it was when it last came to a meeting or left one */
    _Atomic uint32_t arrived;       /* how many it has come to */
};

/* A number that one thread changes and others wait for. */
struct word { _Alignas(CACHE_LINE) _Atomic uint32_t n; };

struct team {
    int members;
    int users;                      /* that have it, where it is shared */
    struct member *list;
    team_fn *fn;
    void *argument;
    struct nodes *nodes;            /* NULL: threads run where the system lets them */
    bool stopping;
    struct word generation;         /* runs that were started */
    struct word sleepers;           /* that wait for a run or a phase: a change must wake someone only when this is not 0 */
    /* team_meet.c */
    struct word *groups;            /* how many of a group have come; of members, then of groups, up to one of all */
    struct word phase;              /* meetings that all have come to */
};

/* What a member waits for: that a word is as far as a number. That takes the first member to start a run, or others to come to a meeting. */
struct awaited {
    _Atomic uint32_t *word;
    uint32_t until;
    _Atomic uint32_t *asleep;       /* says to whoever changes the word that somebody sleeps */
};
void member_wait(struct member *m, const struct awaited *w);
void member_note_cpu(struct member *m);         /* so that others see whether it is in their way */
void word_wake(_Atomic uint32_t *word);         /* whoever sleeps until it changes */

bool team_meet_init(struct team *t);            /* false: no memory */
void team_meet_release(struct team *t);
void member_meet(struct member *m);

#endif
