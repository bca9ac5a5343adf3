/* Shows that a run is being set up, where that takes longer than a second, and that kernels are being timed or peaks measured, which takes
 * seconds where a shape is new to a machine. Off a terminal nothing is said. And tells who sets up that Ctrl-C was pressed. */
#include "cli/cli.h"
#include "core/choices.h"
#include "core/clock.h"
#include "core/setup.h"
#include "dist/dist.h"
#include "lib/peaks.h"

static const double SHOWN_AFTER_S = 1;

static void on_choice(void *context, int done, int total)
{
    static struct progress own;
    struct progress *within = context;
    char text[64];
    snprintf(text, sizeof text, "choosing kernels, once: %d of %d", done, total);
    if (within) {
        progress_note(within, done < total ? text : NULL);
        return;
    }
    if (done == 0)
        progress_start(&own, 0, total);
    if (done < total)
        progress_show(&own, done, text);
    else
        progress_clear(&own);
}

static bool on_setup(void *context, const char *what)
{
    static struct progress own;
    static double since;                    /* when this set-up began; 0: there is none */
    struct progress *within = context;
    const double now = clock_s();
    const bool shown = since > 0 && now - since > SHOWN_AFTER_S && !(what && !*what);
    char text[64];
    snprintf(text, sizeof text, "setting up: %s", what ? what : "");
    if (what && !since) {
        since = now;
        progress_start(&own, 0, 0);
    }
    if (shown && within)
        progress_note(within, what ? text : NULL);
    else if (shown && what)
        progress_line(&own, text);
    else if (shown)
        progress_clear(&own);
    since = what ? since : 0;
    return !stop_requested;
}

/* There is nothing to save before the first step, and who measures does not ask; behind the steps there is. Where others wait for this rank it
 * has to tell them. */
static void on_peaks(const struct backend *b, bool again)
{
    const char *when = again ? " again, behind the steps" : ", once";
    stop_at_once(b && !again && dist_start_read().ranks <= 1);
    if (!b)
        return;
    if (stream_is_terminal(stderr) && b->device)
        fprintf(stderr, "measuring the peaks of %s%s\n", b->device, when);
    else if (stream_is_terminal(stderr))
        fprintf(stderr, "measuring the peaks of this machine on %d threads%s\n", b->lanes, when);
}

void show_choosing(struct progress *within)
{
    choices_watch(on_choice, within);
    setup_watch(on_setup, within);
    known_peaks_watch(on_peaks);
}
