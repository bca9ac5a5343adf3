/* Formats errors; see error.h. */
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clean.h"

#undef error_set            /* error.h: what the static analyzer is told about them */
#undef error_errno
#undef error_no_memory
#undef error_stopped

/* Messages quote names, keys and values of anyone's making, and end on a terminal. */
static void clean(struct error *err)
{
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    text_clean_to(err->text, sizeof err->text, text);
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        clean(err);
        err->status = status;
        err->no_memory = err->stopped = false;
        err->code = 0;
    }
    return status;
}

enum status error_stopped(struct error *err, const char *format, ...)
{
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_set(err, BAD_INPUT, "%s", text);
    if (err)
        err->stopped = true;
    return BAD_INPUT;
}

/* What the user can mend in the command line is BAD_INPUT; what the machine lacks is CANNOT. */
static enum status status_of_errno(int code)
{
    switch (code) {
    case ENOSPC: case EDQUOT: case ENOMEM: case EIO: case EMFILE: case ENFILE: case EROFS: case EFBIG: case ENOLCK:
        return CANNOT;
    default:
        return BAD_INPUT;
    }
}

enum status error_errno(struct error *err, const char *format, ...)
{
    const int code = errno;
    if (err) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof err->text)
            snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(code));
        clean(err);
        err->status = status_of_errno(code);
        err->no_memory = err->stopped = false;
        err->code = code;
    }
    return status_of_errno(code);
}

/* What is small is not worth a number: then all memory is gone, and the sum says nothing. */
static const double WORTH_A_NUMBER = 5e4;

enum status error_no_memory(struct error *err, const char *what, unsigned long long bytes)
{
    if ((double)bytes < WORTH_A_NUMBER)
        error_set(err, CANNOT, "out of memory for %s", what);
    else
        error_set(err, CANNOT, "out of memory: %s needs %.1f MB", what, (double)bytes / 1e6);
    if (err)
        err->no_memory = true;
    return CANNOT;
}

enum status error_add(struct error *err, const char *format, ...)
{
    const size_t used = strlen(err->text);
    va_list args;
    va_start(args, format);
    vsnprintf(err->text + used, sizeof err->text - used, format, args);
    va_end(args);
    clean(err);
    return err->status;
}
