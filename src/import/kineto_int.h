/* The reader of a whole trace, shared by kineto.c (the walk), resync.c (finding events again), read.c (start and end). */
#ifndef HONE_IMPORT_KINETO_INT_H
#define HONE_IMPORT_KINETO_INT_H

#include "import/import_int.h"

enum kineto_state {
    KINETO_START,       /* nothing but space so far */
    KINETO_MEMBERS,     /* between the members of the whole */
    KINETO_EVENTS,      /* between events */
    KINETO_LOST,        /* looks for the next event */
    KINETO_DONE,        /* the bracket that closes the whole was there */
};

struct kineto {
    struct trace *trace;
    struct keeper keeper;
    struct raw_event event;
    enum kineto_state state;
    bool bare;                  /* an array of events without an object around it */
    const char *data, *end;     /* the text at hand */
    int64_t base;               /* position of data in the whole text */
    bool last;                  /* nothing comes after end */
    char before;                /* last byte ahead of data that is no space, while lost */
    int64_t budget;             /* bytes that may be read once more */
    int64_t first_skipped;
    int64_t cut;                /* where the value starts that the end cuts, + 1; 0: none */
    bool warned_long;
    char head[8];               /* the first bytes */
    char keys[160];             /* some of the members' names, for the message that there is no trace */
};

void kineto_warn(struct kineto *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *kineto_feed(struct kineto *k);
enum status kineto_read_text(struct kineto *k, struct source *src, int64_t total, import_progress *progress,
                             void *context, struct error *err);
/* Where it goes on after p, perhaps with a new state; *wait: there has to be more text first. */
const char *kineto_resync(struct kineto *k, const char *p, bool *wait);

#endif
