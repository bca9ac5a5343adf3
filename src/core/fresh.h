/* A folder that a command fills: not there or empty before, with all of its files afterwards, or as it was. Files are made in
 * FOLDER/.hone-new and moved when all of them are whole, each in one rename; the folder's lock is held in the meantime. A kill leaves
 * what is in .hone-new, which the next one sweeps, or, between two renames, files that are whole. */
#ifndef HONE_CORE_FRESH_H
#define HONE_CORE_FRESH_H

#include <stdbool.h>

#include "core/error.h"

enum { FRESH_PATH_MAX = 1024, FRESH_NAME_ROOM = 64 };

struct fresh {
    char folder[FRESH_PATH_MAX];
    char part[FRESH_PATH_MAX + 16];     /* where files are made */
    int lock;                           /* -1: nothing was begun */
    bool made;                          /* the folder was not there */
};

/* A folder that holds something is somebody's, and refused. On failure there is nothing to end. */
enum status fresh_begin(struct fresh *f, const char *folder, struct error *err);
/* In the order of their names, and last config.json or config.yaml, which says what the others are. On failure none is there. */
enum status fresh_publish(struct fresh *f, struct error *err);
/* What was not published is removed. Nothing where nothing was begun. */
void fresh_end(struct fresh *f);

#endif
