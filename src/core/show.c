/* See show.h. */
#include "core/show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *three_digits(double x, const char *unit, number_text out)
{
    const double a = fabs(x);
    const char *format = a >= 1e6 ? "%.*e%s%s" : a > 0 && a < 0.01 ? "%.*g%s%s" : "%.*f%s%s";
    const int digits = a < 99.95 && a >= 9.995 ? 1 : a == 0 || (a >= 99.95 && a < 1e6) ? 0 : 2;
    snprintf(out, NUMBER_TEXT, format, digits, x, *unit ? " " : "", unit);
    return out;
}

static const char *with_unit(double x, const char *const *units, number_text out)
{
    if (!isfinite(x))
        return strcpy(out, "–");
    int i = 0;
    for (; fabs(x) >= 999.5 && units[i + 1]; i++)
        x /= 1000;
    if (i > 0 || x != floor(x))
        return three_digits(x, units[i], out);
    snprintf(out, NUMBER_TEXT, "%.0f%s%s", x, *units[i] ? " " : "", units[i]);
    return out;
}

const char *show_number(double x, number_text out) { return isfinite(x) ? three_digits(x, "", out) : strcpy(out, "–"); }
const char *show_us(double us, number_text out) { return with_unit(us, (const char *const[]){"µs", "ms", "s", NULL}, out); }
const char *show_bytes(double bytes, number_text out) { return with_unit(bytes, (const char *const[]){"B", "kB", "MB", "GB", "TB", NULL}, out); }
const char *show_count(double n, number_text out) { return with_unit(n, (const char *const[]){"", "k", "M", "G", "T", "P", NULL}, out); }
