/* hone launch: starts the ranks of a command on this machine through mpirun, hears what each of them ended with, and starts them again from
 * the newest checkpoint where one was lost. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/arena.h"
#include "core/clock.h"

#ifdef HONE_MPIRUN

enum { MOST_RANKS = 4096, STILL_RUNS = -1, SAID_NOTHING = -2 };
static const double GRACE_S = 3;        /* for those that are left, when some have ended with an error */

struct launch {
    int ranks;
    char **command;                     /* train CONFIG ...; NULL at the end */
    int n_command;
    char folder[PATH_MAX];              /* where ranks leave their process and what they ended with */
    char self[PATH_MAX];
    pid_t mpirun;
    int64_t retries;
};

/* ---- what ranks leave ---- */

static long number_in(const struct launch *l, int rank, const char *suffix)
{
    char path[PATH_MAX + 32];
    long n = SAID_NOTHING;
    snprintf(path, sizeof path, "%s/rank-%d%s", l->folder, rank, suffix);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &n) != 1)
        n = SAID_NOTHING;
    if (f)
        fclose(f);
    return n;
}

static void sweep(const struct launch *l)
{
    char path[PATH_MAX + 32];
    for (int r = 0; r < l->ranks; r++)
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s/rank-%d%s", l->folder, r, k ? ".process" : "");
            unlink(path);
        }
}

static bool some_failed(const struct launch *l)
{
    for (int r = 0; r < l->ranks; r++)
        if (number_in(l, r, "") > OK)
            return true;
    return false;
}

static bool some_began(const struct launch *l)
{
    for (int r = 0; r < l->ranks; r++)
        if (number_in(l, r, ".process") != SAID_NOTHING || number_in(l, r, "") != SAID_NOTHING)
            return true;
    return false;
}

/* The first that failed decides; one that said nothing was killed. */
static int code_of(const struct launch *l, int *lost)
{
    int code = OK;
    *lost = -1;
    for (int r = 0; r < l->ranks; r++) {
        const long said = number_in(l, r, "");
        if (said == SAID_NOTHING && *lost < 0)
            *lost = r;
        if (said > OK && code == OK)
            code = (int)said;
    }
    return code == OK && *lost >= 0 ? CANNOT : code;
}

/* ---- running them ---- */

/* Every rank may be on any core; a lost one does not end the others, which notice it themselves. */
static char **arguments(struct launch *l, char count[16], bool resume)
{
    static const char *const before[] = {HONE_MPIRUN, "--oversubscribe", "--bind-to", "none", "--enable-recovery", "-q", "-n"};
    enum { BEFORE = sizeof before / sizeof *before };
    char **list = xcalloc((size_t)(BEFORE + l->n_command + 4), sizeof *list);
    int n = 0;
    for (; n < BEFORE; n++)
        list[n] = (char *)before[n];
    snprintf(count, 16, "%d", l->ranks);
    list[n++] = count;
    list[n++] = l->self;
    for (int i = 0; i < l->n_command; i++)
        list[n++] = l->command[i];
    if (resume)
        list[n++] = (char *)"--resume";
    return list;
}

/* In a group of its own: Ctrl-C comes here, and is passed on to a rank, which saves; mpirun would kill them. Where this process is killed itself, and can pass on
 * nothing, mpirun is told, and its ranks do not go on alone. It refuses root, whose business that is. */
static void become_mpirun(const struct launch *l, pid_t parent, char **list)
{
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(CANNOT);
    setenv(LAUNCH_FOLDER, l->folder, 1);
    if (l->retries > 0)
        setenv(LAUNCH_RETRIES, "1", 1);
    if (geteuid() == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    if (!isatty(STDOUT_FILENO))
        setenv("NO_COLOR", "1", 1);                 /* ranks see a terminal of mpirun's */
    if (!freopen("/dev/null", "r", stdin))
        _exit(CANNOT);
    execv(HONE_MPIRUN, list);
    fprintf(stderr, "hone: cannot start '%s': %s; install openmpi-bin\n", HONE_MPIRUN, strerror(errno));
    _exit(CANNOT);
}

static void pass_stop_on(const struct launch *l)
{
    const long process = number_in(l, 0, ".process");
    if (process > 1)
        kill((pid_t)process, SIGTERM);
    else
        kill(l->mpirun, SIGTERM);                   /* it has not got so far */
}

/* Until mpirun has ended. Who is left over when others have failed is stopped and cannot end by itself. */
static void wait_for(struct launch *l)
{
    double failed_at = 0;
    bool passed_on = false, ended = false;
    int status;
    while (waitpid(l->mpirun, &status, WNOHANG) == 0) {
        if (stop_requested && !passed_on) {
            pass_stop_on(l);
            passed_on = true;
        }
        if (!failed_at && some_failed(l))
            failed_at = clock_s();
        if (failed_at && clock_s() - failed_at > GRACE_S + (ended ? GRACE_S : 0)) {
            kill(ended ? -l->mpirun : l->mpirun, ended ? SIGKILL : SIGTERM);
            failed_at = ended ? clock_s() : failed_at;
            ended = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static int run_once(struct launch *l, bool resume, int *lost, struct error *err)
{
    char count[16];
    char **list = arguments(l, count, resume);
    sweep(l);
    fflush(NULL);
    const pid_t self = getpid();
    l->mpirun = fork();
    if (l->mpirun == 0)
        become_mpirun(l, self, list);
    free(list);
    if (l->mpirun < 0) {
        error_errno(err, "cannot start a process");
        return report_error(err);
    }
    wait_for(l);
    if (!some_began(l) && !stop_requested) {
        l->retries = 0;                             /* it would not start any the next time either */
        error_set(err, CANNOT, "'%s' has started no rank; see what '%s -n %d true' says", HONE_MPIRUN, HONE_MPIRUN, l->ranks);
        return report_error(err);
    }
    return code_of(l, lost);
}

static bool resumes(const struct launch *l)
{
    for (int i = 0; i < l->n_command; i++)
        if (!strcmp(l->command[i], "--resume"))
            return true;
    return false;
}

/* Only what the machine did is tried again: a wrong config stays wrong. */
static int run_all(struct launch *l)
{
    struct error err;
    int lost = -1, code = run_once(l, false, &lost, &err);
    for (int64_t i = 1; i <= l->retries && code == CANNOT && !stop_requested; i++) {
        fprintf(stderr, "hone: ");
        if (lost >= 0)
            fprintf(stderr, "rank %d ended without a word; ", lost);
        fprintf(stderr, "retry %lld of %lld, from the newest checkpoint\n", (long long)i, (long long)l->retries);
        code = run_once(l, !resumes(l), &lost, &err);
    }
    if (code != OK && lost >= 0)
        fprintf(stderr, "hone: rank %d ended without a word: it was killed\n", lost);
    return code;
}

static int launch(struct launch *l)
{
    struct error err;
    const char *tmp = getenv("TMPDIR");
    const ssize_t n = readlink("/proc/self/exe", l->self, sizeof l->self - 1);
    snprintf(l->folder, sizeof l->folder, "%s/hone-launch-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n <= 0 || !mkdtemp(l->folder)) {
        error_errno(&err, "cannot make a folder in '%s'", tmp && *tmp ? tmp : "/tmp");
        return report_error(&err);
    }
    l->self[n] = '\0';
    install_stop_handler();
    const int code = run_all(l);
    sweep(l);
    rmdir(l->folder);
    return code;
}

#else

enum { MOST_RANKS = 4096 };
struct launch { int ranks; char **command; int n_command; int64_t retries; };

static int launch(struct launch *l)
{
    struct error err;
    (void)l;
    error_set(&err, CANNOT, "this build of hone has no MPI module: install libopenmpi-dev and openmpi-bin and build it again");
    return report_error(&err);
}

#endif

/* What ranks can do together. */
static const char *const shared_commands[] = {"train", "profile", "tune", "doctor"};
enum { SHARED = sizeof shared_commands / sizeof *shared_commands };

static bool is_shared(const char *command)
{
    for (int i = 0; i < SHARED; i++)
        if (!strcmp(command, shared_commands[i]))
            return true;
    return false;
}

/* Options of our own come before the command, whose own are left to it. */
static int first_of_command(int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"))
        i += !strcmp(argv[i], "-n") || !strcmp(argv[i], "--retry") ? 2 : 1;
    return i < argc ? i : argc;
}

int cmd_launch(int argc, char **argv)
{
    int64_t ranks = INT64_MIN, retries = 0;        /* not given */
    struct text_list none = {0};
    struct error err;
    const struct option_def options[] = {
        {"-n", "N", OPTION_INT, &ranks, "start so many ranks"},
        {"--retry", "R", OPTION_INT, &retries, "where one is lost, start again from the newest checkpoint, up to R times"},
        {0},
    };
    const struct usage usage = {
        "launch", "-n N COMMAND...", "Starts a command on N ranks of this machine, which train one model together (docs/ranks.md): train,\n"
        "profile, tune, or doctor, which measures how fast they talk.\n"
        "On several machines: mpirun or srun, which it works under, too.", options,
        "  hone launch -n 2 train quickstart\n  hone launch -n 4 --retry 3 train my.yaml --out runs/four\n", 0, 0};
    const int first = first_of_command(argc, argv);
    const enum parsed parsed = parse_options(&usage, first, argv, &none);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct launch l = {.ranks = (int)ranks, .command = argv + first, .n_command = argc - first, .retries = retries};
    if (ranks == INT64_MIN)
        error_set(&err, BAD_INPUT, "-n is missing; it takes the number of ranks: hone launch -n 2 train CONFIG");
    else if (ranks < 1 || ranks > MOST_RANKS)
        error_set(&err, BAD_INPUT, "-n is %lld; it takes the number of ranks, 1 to %d", (long long)ranks, MOST_RANKS);
    else if (retries < 0)
        error_set(&err, BAD_INPUT, "--retry is %lld; it must be 0 or more", (long long)retries);
    else if (!l.n_command)
        error_set(&err, BAD_INPUT, "a command is missing: hone launch -n %lld train CONFIG", (long long)ranks);
    else if (!is_shared(l.command[0]))
        error_set(&err, BAD_INPUT, "'%s' is not a command that ranks share; train, profile, tune and doctor are", l.command[0]);
    else if (retries > 0 && strcmp(l.command[0], "train"))
        error_set(&err, BAD_INPUT, "--retry is for train: '%s' has no checkpoint to go on from", l.command[0]);
    else
        return launch(&l);
    return report_error(&err);
}
