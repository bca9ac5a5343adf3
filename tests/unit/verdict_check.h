/* Which gates of a verdict fail. */
#ifndef HONE_TESTS_VERDICT_CHECK_H
#define HONE_TESTS_VERDICT_CHECK_H

#include <string.h>

#include "prove/prove.h"
#include "support/check.h"

/* Exactly these gates fail; the list ends with NULL. */
static inline void assert_failed(const struct verdict *v, ...)
{
    const char *wanted[GATES_MAX];
    int n = 0, failed = 0;
    va_list args;
    va_start(args, v);
    while ((wanted[n] = va_arg(args, const char *)))
        n++;
    va_end(args);
    for (int i = 0; i < v->n; i++) {
        bool should = false;
        for (int k = 0; k < n; k++)
            should |= !strcmp(wanted[k], v->gates[i].name);
        if (v->gates[i].pass == should)
            fail_msg("gate %s should %s: %s", v->gates[i].name, should ? "fail" : "pass", v->gates[i].words);
        failed += !v->gates[i].pass;
    }
    assert_int_equal(failed, n);
    assert_int_equal(v->pass, n == 0);
}

#endif
