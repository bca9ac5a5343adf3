/* Bytes, ops and tokens in JSON: whole numbers, though they are computed with as doubles. As reals they would end in ".0", and lose
 * digits where documents have nine. */
#ifndef HONE_CORE_JSON_WHOLE_H
#define HONE_CORE_JSON_WHOLE_H

#include <jansson.h>
#include <math.h>

/* Rounded; null where it is not finite. */
static inline json_t *json_whole(double x)
{
    return fabs(x) < 9e18 ? json_integer((json_int_t)llround(x)) : isfinite(x) ? json_real(x) : json_null();
}

#endif
