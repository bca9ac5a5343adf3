/* The folder that a watched program is recorded into, and the hook that records it. */
#ifndef HONE_CLI_WATCH_FOLDER_H
#define HONE_CLI_WATCH_FOLDER_H

#include <limits.h>

#include "core/error.h"

struct watch_folder {
    char recording[PATH_MAX];   /* OUT/recording, an absolute path */
    int lock;                   /* of it; -1: none */
    char above[PATH_MAX];       /* the folder of this path that was there before; empty: all were */
};

/* Makes OUT/recording, empty. What an earlier watch recorded there is set aside; what is not of a watch, or was changed since, is refused. */
enum status watch_folder_open(struct watch_folder *f, const char *out, struct error *err);
/* The program has ended: settings that it left are hone's own as they are now. */
enum status watch_folder_own(const struct watch_folder *f, struct error *err);
/* What was recorded before goes, or comes back where no rank took a step; where there was nothing before, no folder is left that nothing else is in. */
void watch_folder_close(struct watch_folder *f);

/* Where sitecustomize.py and hone_hook are. */
enum status watch_find_hook(char folder[PATH_MAX], struct error *err);

#endif
