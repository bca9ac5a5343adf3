/* Starts a program and passes signals on to it; see watch_child.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/watch_child.h"

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM, SIGTSTP};
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on, ENDING = 4 };          /* the first are those that people end hone with */
static volatile sig_atomic_t running;           /* the process that signals are for; 0: it has ended */
static struct sigaction before_it[ENDING];      /* what they did before we listened */

/* As we would without a handler: in a group that no shell looks after nobody stops, as nobody could let it go on. */
static void stop_here(void)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    struct sigaction ours;
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigaction(SIGTSTP, &plain, &ours);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGTSTP, &ours, NULL);
}

/* What is to end the program ends hone from now on; the others are for nobody. */
static void stop_listening(void)
{
    running = 0;
    for (int i = 0; i < ENDING; i++)
        sigaction(passed_on[i], &before_it[i], NULL);
}

/* Nobody has asked yet how, as hone is at work on the report. */
static bool has_ended(void)
{
    siginfo_t how = {0};
    return waitid(P_PID, (id_t)running, &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid;
}

/* The program is gone, so this one is for hone; but for the terminal's first, which may be what ended it. */
static void take(int signal, bool of_terminal)
{
    static volatile sig_atomic_t first_came;
    if (of_terminal && !first_came) {
        first_came = 1;
        return;
    }
    stop_listening();
    raise(signal);                              /* comes when the handler returns */
}

static bool is_ending(int signal)
{
    for (int i = 0; i < ENDING; i++)
        if (signal == passed_on[i])
            return true;
    return false;
}

/* What the terminal sends goes to the whole group: the program has it already. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    const int before = errno;
    const bool of_terminal = info->si_code > 0;
    (void)context;
    if (running && is_ending(signal) && has_ended())
        take(signal, of_terminal);
    else if (running && !of_terminal)
        kill((pid_t)running, signal);
    if (signal == SIGTSTP)
        stop_here();
    errno = before;
}

static void listen(pid_t pid)
{
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    running = pid;
    sigfillset(&action.sa_mask);
    for (int i = 0; i < PASSED_ON; i++)
        sigaction(passed_on[i], &action, i < ENDING ? &before_it[i] : NULL);
}

/* As they were for hone: a stream that is closed is the program's to find so. */
static bool give_streams(bool quiet_stdout)
{
    if (quiet_stdout && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return false;
    for (int fd = 0; fd <= 2; fd++)
        if (stream_was_closed[quiet_stdout && fd == STDOUT_FILENO ? STDERR_FILENO : fd])
            close(fd);
    return true;
}

/* Does not return. What goes wrong is told through the pipe, which a program that starts closes. */
static void become(char *const *command, const struct child_setting *settings, int n, bool quiet_stdout, int tell)
{
    for (int i = 0; i < n; i++)
        setenv(settings[i].name, settings[i].value, 1);
    signal(SIGXFSZ, SIG_DFL);                   /* which hone ignores */
    if (give_streams(quiet_stdout))
        execvp(command[0], command);
    const int why = errno;
    if (write(tell, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

static enum status cannot_start(const char *name, int why, struct error *err)
{
    if (why == ENOENT)
        return error_set(err, BAD_INPUT, "there is no program '%s'; give the command as you type it: hone watch -- python train.py", name);
    if (why == EACCES || why == ENOEXEC)
        return error_set(err, BAD_INPUT, "'%s' is not a program that can be started (%s); give the command as you type it: hone watch -- python %s",
                         name, strerror(why), name);
    return error_set(err, CANNOT, "cannot start '%s': %s", name, strerror(why));
}

static enum status wait_for_start(struct child *c, const char *name, int from, struct error *err)
{
    int why = 0;
    ssize_t n;
    while ((n = read(from, &why, sizeof why)) < 0 && errno == EINTR)
        ;
    if (n != sizeof why)
        return OK;
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    stop_listening();
    return cannot_start(name, why, err);
}

enum status child_start(struct child *c, char *const *command, const struct child_setting *settings, int n, bool quiet_stdout, struct error *err)
{
    int tell[2];
    sigset_t all, before;
    *c = (struct child){0};
    if (pipe2(tell, O_CLOEXEC) < 0)
        return error_errno(err, "cannot start a process");
    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);      /* nobody is told to stop before we listen */
    c->pid = fork();
    if (c->pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        become(command, settings, n, quiet_stdout, tell[1]);
    }
    const int why = errno;
    if (c->pid > 0)
        listen(c->pid);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(tell[1]);
    errno = why;
    const enum status st = c->pid < 0 ? error_errno(err, "cannot start a process") : wait_for_start(c, command[0], tell[0], err);
    close(tell[0]);
    return st;
}

bool child_runs(struct child *c)
{
    int status;
    const pid_t ended = waitpid(c->pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return true;
    stop_listening();
    if (ended > 0) {
        c->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        c->code = c->signal ? 128 + c->signal : WEXITSTATUS(status);
    }
    return false;
}

void child_die_alike(const struct child *c)
{
    if (c->signal != SIGINT)
        return;
    fflush(NULL);
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
}
