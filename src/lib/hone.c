/* What all of libhone shares: version, messages, texts, who listens. */
#include <pthread.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/notice.h"
#include "lib/hone_int.h"

static _Thread_local struct error last;

const char *hone_version(void) { return HONE_VERSION; }

const char *hone_message(void) { return last.text; }

void hone_free(char *text) { free(text); }

void hone_on_notice(hone_notice_fn *tell, void *context) { notice_listen(tell, context); }

void hone_on_exhausted(void (*end)(void)) { arena_on_exhausted(end ? end : abort); }

hone_status hone_end(enum status st, const struct error *err)
{
    if (st != OK)
        last = *err;
    return (hone_status)st;
}

hone_status hone_missing(const char *what)
{
    return (hone_status)error_set(&last, BAD_INPUT, "%s is NULL; it must be given", what);
}

hone_status hone_text(char **out, hone_write_fn *write, const void *what)
{
    struct error err;
    char *text = NULL;
    size_t size;
    if (!out)
        return hone_missing("where the text goes");
    FILE *to = open_memstream(&text, &size);
    enum status st = to ? write(what, to, &err) : error_errno(&err, "cannot prepare a text");
    const bool whole = to && fclose(to) == 0;
    if (st == OK && !whole)
        st = error_set(&err, CANNOT, "out of memory for a text");
    if (st == OK)
        *out = text;
    else
        free(text);
    return hone_end(st, &err);
}

/* ---- one at a time ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t computing;

static void make_lock(void)
{
    pthread_mutexattr_t again;
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&computing, &again);
    pthread_mutexattr_destroy(&again);
}

void hone_compute_begin(void)
{
    pthread_once(&once, make_lock);
    pthread_mutex_lock(&computing);
}

void hone_compute_end(void) { pthread_mutex_unlock(&computing); }
