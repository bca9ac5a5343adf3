/* Waits for a program that was told to end; see watch_stop.h. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cli/watch_stop.h"
#include "watch/watch.h"

/* Tenths of a second, with a program that has run to its end, and with one that still waits for its threads, or trains on. */
enum { PATIENCE = 100, LONG_PATIENCE = 300 };

void watch_stop_read(struct watch_stop *s, const char *recording)
{
    struct arena a = {0};
    struct watched w;
    struct error err;
    const bool all = watched_read(&w, &a, recording, &err) == OK && watched_all_finished(&w);
    bool told = all, ended = all;
    for (int i = 0; i < w.n; i++) {
        told = told && w.ranks[i].stopped;
        ended = ended && w.ranks[i].ended;
    }
    watched_release(&w);
    arena_release(&a);
    s->told += s->told || told;
    s->ended += s->ended || (told && ended);
}

/* Also where nobody has asked yet how. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == pid;
}

/* The program, and what it started as far as that can be seen. */
static void send(struct watch_stop *s, pid_t pid, int signal)
{
    family_find(&s->family, pid);
    family_signal(&s->family, signal);
    if (!s->family.n && !has_ended(pid))
        kill(pid, signal);
}

static void end(struct watch_stop *s, pid_t pid)
{
    if (has_ended(pid))
        return;
    fprintf(stderr, "hone: the program has not ended %d s after it was to, and is ended\n", (s->ended >= PATIENCE ? PATIENCE : LONG_PATIENCE) / 10);
    send(s, pid, SIGTERM);
    s->by_us = 1;
}

void watch_stop_look(struct watch_stop *s, const char *recording, pid_t pid)
{
    watch_stop_read(s, recording);
    if (s->by_us)
        s->by_us++;
    else if (s->ended >= PATIENCE || s->told >= LONG_PATIENCE)
        end(s, pid);
    if (s->by_us == PATIENCE)
        send(s, pid, SIGKILL);                  /* and what it started since */
}

bool watch_stop_waits(const struct watch_stop *s) { return s->by_us && s->by_us < 2 * PATIENCE && family_lives(&s->family); }

void watch_stop_release(struct watch_stop *s) { family_release(&s->family); }
