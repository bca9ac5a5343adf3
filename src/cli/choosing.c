/* Shows that kernels are being timed, which takes seconds where a shape is new to a machine. Off a terminal nothing is said. */
#include "cli/cli.h"
#include "core/choices.h"

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

void show_choosing(struct progress *within) { choices_watch(on_choice, within); }
