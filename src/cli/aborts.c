/* A library that aborts, because it found no memory, ends the process with one line and the code for that. Nothing is lost: files get
 * their names when they are whole. Any other abort stays one. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/inside.h"

/* Signal handlers may not use stdio. */
static void say(const char *library)
{
    const char *const parts[] = {"hone: the library ", library, " gave up in the midst of its work, as it does without memory; a smaller "
                                 "train.batch_size or fewer threads take less\n"};
    char line[256];
    size_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const size_t length = strlen(parts[i]), room = sizeof line - n;
        memcpy(line + n, parts[i], length < room ? length : room);
        n += length < room ? length : room;
    }
    if (write(STDERR_FILENO, line, n) < 0)
        _exit(CANNOT);                  /* nobody to tell */
}

/* abort() raises the signal in its own thread. One that somebody sends may come to any. */
static bool is_own(const siginfo_t *info) { return info->si_code == SI_TKILL && info->si_pid == getpid(); }

static void on_abort(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *library = is_own(info) ? inside_library() : NULL;
    if (library) {
        say(library);
        _exit(CANNOT);
    }
    signal(number, SIG_DFL);
    raise(number);                      /* it is blocked here, and ends the process as soon as this returns */
}

void handle_aborts(void)
{
    const struct sigaction action = {.sa_sigaction = on_abort, .sa_flags = SA_SIGINFO};
    sigaction(SIGABRT, &action, NULL);
}
