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

static hone_notice_fn *teller;

static void tell_notice(void *context, const char *text)
{
    const locale_t ours = hone_call_out();
    teller(context, text);
    hone_leave(ours);
}

void hone_on_notice(hone_notice_fn *tell, void *context)
{
    teller = tell;
    notice_listen(tell ? tell_notice : NULL, context);
}

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

hone_status hone_missing_in(const char *what, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (!list[i])
            return (hone_status)error_set(&last, BAD_INPUT, "%s %d of %d is NULL; it must be given", what, i + 1, n);
    return HONE_OK;
}

hone_status hone_text(char **out, hone_write_fn *write, const void *what)
{
    struct error err;
    char *text = NULL;
    size_t size;
    if (!out)
        return hone_missing("where the text goes");
    const locale_t theirs = hone_enter();
    FILE *to = open_memstream(&text, &size);
    enum status st = to ? write(what, to, &err) : error_errno(&err, "cannot prepare a text");
    const bool whole = to && fclose(to) == 0;
    if (st == OK && !whole)
        st = error_set(&err, CANNOT, "out of memory for a text");
    if (st == OK)
        *out = text;
    else
        free(text);
    hone_leave(theirs);
    return hone_end(st, &err);
}

/* ---- numbers with a point ---- */

static pthread_once_t plain_once = PTHREAD_ONCE_INIT;
static locale_t plain;
static _Thread_local locale_t own;              /* of this thread, as it was outside of the library; 0: it never was inside */

static void make_plain(void) { plain = xneed(newlocale(LC_ALL_MASK, "C", (locale_t)0)); }

locale_t hone_enter(void)
{
    pthread_once(&plain_once, make_plain);
    const locale_t theirs = uselocale(plain);
    if (theirs != plain)
        own = theirs;
    return theirs;
}

void hone_leave(locale_t theirs) { uselocale(theirs); }

/* A thread of the library has never entered, and stays as it is. */
locale_t hone_call_out(void) { return uselocale(own); }

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

locale_t hone_compute_begin(void)
{
    pthread_once(&once, make_lock);
    pthread_mutex_lock(&computing);
    return hone_enter();
}

void hone_compute_end(locale_t theirs)
{
    hone_leave(theirs);
    pthread_mutex_unlock(&computing);
}
