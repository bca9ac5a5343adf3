/* place KIND WHICH LIBRARY RESULT COMMAND...: runs a command and lets one of its calls of a kind fail, counted from the start of its
 * main over all threads. WHICH is N, the Nth call, or PATH:K, the Kth that comes by a call path (path.c). The kind "none" lets none
 * fail and counts those of all kinds by their paths. RESULT gets a line "hit 0|1 exit CODE signal NUMBER late 0|1 KIND COUNT KIND
 * COUNT..." and, of the kind "none", a line "KIND PATH COUNT" for every path. Exit code: 0 when the command was run to whatever end,
 * 77 where tracing is not allowed, 2 for all else.
 *
 * A filter stops the command at the system calls of the kind (and at no other, so that it runs at full speed); this process counts
 * them, and makes the chosen one return an error, write half of its bytes, or never return because the process is killed. Where paths
 * matter the thread is asked for its own first, by a signal, and then makes the same call again. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "fault.h"
#include "kinds.h"
#include "registers.h"

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* ---- the command's side */

static void become(const struct kind *k, const char *library, const char *shared, char **command)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(126);
    raise(SIGSTOP);
    setenv("LD_PRELOAD", library, 1);
    setenv(FAULT_SHARED, shared, 1);
    if (filter(k))
        _exit(126);
    execv(command[0], command);
    _exit(126);
}

/* ---- the driver's side */

enum { THREADS_MOST = 256, PATHS_MOST = 1 << 14 };

struct run {
    const struct kind *kind;            /* NULL: count only */
    int by_path;                        /* paths are asked for */
    unsigned long at, calls[KINDS], of_path;
    uint64_t path;
    int begun, hit;
    pid_t child;
    struct thread { pid_t id; int asked; uint64_t path; } threads[THREADS_MOST];
    int n_threads;
    struct met { int kind; struct fault_path path; } met[PATHS_MOST];
    int n_met;
};

static struct thread *thread_of(struct run *r, pid_t id)
{
    for (int i = 0; i < r->n_threads; i++)
        if (r->threads[i].id == id)
            return &r->threads[i];
    if (r->n_threads == THREADS_MOST)
        die("more threads than this driver knows");
    r->threads[r->n_threads] = (struct thread){.id = id};
    return &r->threads[r->n_threads++];
}

/* False: the thread has been asked, and comes again. One that hears no signals at the moment (it starts a thread) does so without an
 * answer: its path stays 0. */
static int path_is_known(struct run *r, pid_t pid, uint64_t *path)
{
    struct thread *t = thread_of(r, pid);
    *path = t->path;
    t->path = 0;
    t->asked = !t->asked;
    if (t->asked) {
        syscall(SYS_tkill, pid, FAULT_ASK);
        call_again(pid);
    }
    return !t->asked;
}

static void meet(struct run *r, int kind, uint64_t path)
{
    int i = 0;
    while (i < r->n_met && (r->met[i].kind != kind || r->met[i].path.path != path))
        i++;
    if (i == PATHS_MOST)
        die("more paths than this driver can note");
    if (i == r->n_met)
        r->met[r->n_met++] = (struct met){kind, {path, 0}};
    r->met[i].path.calls++;
}

/* What is said on standard error is not counted: a test could not ask for the message otherwise. */
static int counts(const struct run *r, pid_t pid, long nr)
{
    return r->begun && nr != SYS_prctl && !(is_of(&kinds[WRITE], nr) && argument(pid, 0) == 2);
}

static void place(struct run *r, pid_t pid)
{
    r->hit = 1;
    if (r->kind->action == FAIL)
        refuse(pid, r->kind->error);
    else if (r->kind->action == SHORTEN)
        set_third(pid, (argument(pid, 2) + 1) / 2);
    else
        kill(r->child, SIGKILL);
}

static void count(struct run *r, long nr, uint64_t path)
{
    for (int i = 0; i < KINDS; i++)
        if (is_of(&kinds[i], nr)) {
            r->calls[i]++;
            if (!r->kind)
                meet(r, i, path);
        }
}

/* Whether this one fails, which has been counted. */
static int is_the_one(struct run *r, long nr, uint64_t path)
{
    if (!r->kind || !is_of(r->kind, nr))
        return 0;
    if (r->hit)
        return r->kind->for_good;
    r->of_path += r->by_path && path == r->path;
    return r->by_path ? path == r->path && r->of_path == r->at : r->calls[r->kind - kinds] == r->at;
}

static void at_call(struct run *r, pid_t pid)
{
    const long nr = call_number(pid);
    uint64_t path = 0;
    if (nr == SYS_prctl && argument(pid, 0) == FAULT_BEGIN)
        r->begun = 1;
    if (nr == SYS_prctl && argument(pid, 0) == FAULT_PATH)
        thread_of(r, pid)->path = thread_of(r, pid)->asked ? argument(pid, 1) : 0;
    if (!counts(r, pid, nr) || (r->by_path && !path_is_known(r, pid, &path)))
        return;
    count(r, nr, path);
    if (is_the_one(r, nr, path))
        place(r, pid);
}

static volatile sig_atomic_t late;
static pid_t victim;

static void on_alarm(int signal_number)
{
    (void)signal_number;
    late = 1;
    kill(victim, SIGKILL);
}

/* Handles one stop; returns the signal that goes on to the process. */
static int at_stop(struct run *r, pid_t pid, int status)
{
    const int stopped = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP)
        at_call(r, pid);
    return event || stopped == SIGTRAP || stopped == SIGSTOP ? 0 : stopped;
}

static int follow(struct run *r)
{
    int status;
    for (;;) {
        const pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            die("waitpid");
        if (WIFSTOPPED(status))
            ptrace(PTRACE_CONT, pid, NULL, (long)at_stop(r, pid, status));
        else if (pid == r->child)
            return status;
    }
}

static const struct kind *find_kind(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    if (!strcmp(name, "none"))
        return NULL;
    fprintf(stderr, "'%s' is no kind of fault\n", name);
    exit(2);
}

static void read_which(struct run *r, const char *text)
{
    const char *colon = strchr(text, ':');
    r->by_path = colon || !r->kind;
    r->path = colon ? strtoull(text, NULL, 16) : 0;
    r->at = strtoul(colon ? colon + 1 : text, NULL, 10);
}

static struct fault_shared *share(char *path, const struct run *r)
{
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(struct fault_shared)))
        die(path);
    struct fault_shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED)
        die("mmap");
    close(fd);
    s->notes = !r->kind;
    s->allocations.at = r->kind == &kinds[MALLOC] ? r->at : 0;
    s->products.at = r->kind == &kinds[ABORT] ? r->at : 0;
    s->allocations.path = s->products.path = r->path;
    s->limit = r->kind == &kinds[HEAP] ? r->at * FAULT_HEAP_STEP : 0;
    return s;
}

static void take_over(struct run *r, int kind, const struct fault_calls *c)
{
    r->calls[kind] = c->calls;
    r->hit |= c->hit;
    for (int i = 0; i < FAULT_PATHS && !r->kind; i++)
        if (c->paths[i].path && r->n_met < PATHS_MOST)
            r->met[r->n_met++] = (struct met){kind, c->paths[i]};
}

static void report(const char *path, const struct run *r, int status)
{
    FILE *f = fopen(path, "w");
    if (!f)
        die(path);
    fprintf(f, "hit %d exit %d signal %d late %d", r->hit, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0, late);
    for (int i = 0; i < KINDS; i++)
        fprintf(f, " %s %lu", kinds[i].name, r->calls[i]);
    fputc('\n', f);
    for (int i = 0; i < r->n_met; i++)
        fprintf(f, "%s %llx %lu\n", kinds[r->met[i].kind].name, (unsigned long long)r->met[i].path.path, r->met[i].path.calls);
    if (fclose(f))
        die(path);
}

int main(int argc, char **argv)
{
    enum { SECONDS = 120 };
    if (argc < 6) {
        fputs("usage: place KIND N|PATH:K LIBRARY RESULT COMMAND...\n", stderr);
        return 2;
    }
    char path[] = "/tmp/hone-fault-XXXXXX";
    static struct run r;
    r.kind = find_kind(argv[1]);
    read_which(&r, argv[2]);
    struct fault_shared *s = share(path, &r);
    int status;

    victim = r.child = fork();
    if (r.child < 0)
        die("fork");
    if (r.child == 0)
        become(r.kind, argv[3], path, argv + 5);
    if (waitpid(r.child, &status, 0) < 0 || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, r.child, NULL, PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
               PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL)) {
        unlink(path);
        return 77;
    }
    signal(SIGALRM, on_alarm);
    alarm(SECONDS);
    ptrace(PTRACE_CONT, r.child, NULL, 0L);
    status = follow(&r);
    unlink(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 126)
        return 77;
    take_over(&r, MALLOC, &s->allocations);
    take_over(&r, ABORT, &s->products);
    r.calls[HEAP] = s->peak / FAULT_HEAP_STEP;
    r.hit |= s->limit != 0;
    report(argv[4], &r, status);
    return 0;
}
