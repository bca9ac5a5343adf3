/* cmocka with what it needs, and assertions on statuses, messages and numbers. */
#ifndef HONE_TESTS_CHECK_H
#define HONE_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/error.h"

#define assert_ok(call, err)                                                                                          \
    do {                                                                                                              \
        if ((call) != OK)                                                                                             \
            fail_msg("%s: %s", #call, (err).text);                                                                    \
    } while (0)

/* The error says all of the words, which end with NULL. */
static inline void assert_says(const struct error *err, ...)
{
    va_list args;
    va_start(args, err);
    for (const char *words; (words = va_arg(args, const char *));)
        if (!strstr(err->text, words))
            fail_msg("the error '%s' does not say '%s'", err->text, words);
    va_end(args);
}

static inline void assert_near(double is, double should, double tolerance, const char *what)
{
    if (!(fabs(is - should) <= tolerance))
        fail_msg("%s is %.9g; it should be %.9g within %.3g", what, is, should, tolerance);
}

#endif
