/* Formats errors; see error.h. */
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        err->status = status;
    }
    return status;
}

/* What the user can mend in the command line is BAD_INPUT; what the machine lacks is CANNOT. */
static enum status status_of_errno(int code)
{
    switch (code) {
    case ENOSPC: case EDQUOT: case ENOMEM: case EIO: case EMFILE: case ENFILE: case EROFS: case EFBIG:
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
        err->status = status_of_errno(code);
    }
    return status_of_errno(code);
}

enum status error_no_memory(struct error *err, const char *what, unsigned long long bytes)
{
    return error_set(err, CANNOT, "out of memory: %s needs %.1f MB; try a smaller batch_size, seq or model", what,
                     (double)bytes / 1e6);
}
