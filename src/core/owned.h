/* Which files of a folder a report wrote: FOLDER/.hone-report.json lists each with its kind of report, size and XXH3-64.
 * What is not listed, or is not any more what was written, is somebody else's, and nobody here replaces or removes it. */
#ifndef HONE_CORE_OWNED_H
#define HONE_CORE_OWNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#define OWNED_LIST ".hone-report.json"
enum { OWNED_NAME_MAX = 256 };

struct owned_file {
    char report[16];                    /* "profile" */
    char name[OWNED_NAME_MAX];          /* "report.html", "tensorboard/events.1"; at most one folder deep */
    uint64_t bytes, xxh3;
};

/* While files are being replaced a name is listed twice, as the old one and as the new one: either may be there. */
struct owned {
    struct owned_file *files;
    int n;
};

/* No list is an empty one; one that cannot be read or is damaged is an error. */
enum status owned_read(struct owned *out, const char *folder, struct error *err);
/* The same from text; `name` is for messages. On failure *out is empty. */
enum status owned_parse(struct owned *out, const char *name, const char *text, size_t size, struct error *err);
enum status owned_write(const struct owned *o, const char *folder, struct error *err);
void owned_release(struct owned *o);

void owned_add(struct owned *o, const struct owned_file *file);
void owned_add_all(struct owned *o, const struct owned *more, const char *report, bool same);  /* those of the report, or all others */
/* The report that lists the name, or NULL. */
const char *owned_by(const struct owned *o, const char *name);

enum owned_state {
    OWNED_MISSING,                      /* no such file */
    OWNED_INTACT,                       /* listed for this report, and as it was written */
    OWNED_CHANGED,                      /* listed for this report, and changed since */
    OWNED_OTHER,                        /* of another report */
    OWNED_FOREIGN,                      /* in no list */
};
enum status owned_look(const struct owned *o, const char *folder, const char *report, const char *name,
                       enum owned_state *state, struct error *err);

/* Printable ASCII in at most two parts, none of which begins with a dot: a list cannot point out of its folder. */
bool owned_name_is_good(const char *name);

#endif
