/* Reading a report.json that was made elsewhere, and cells of its report.md. What is missing is NAN, "" or a dash. */
#ifndef HONE_REPORT_FIELDS_INT_H
#define HONE_REPORT_FIELDS_INT_H

#include <math.h>
#include <string.h>

#include "report/report_int.h"

enum { NAME_COLUMNS = 160, SENTENCE_COLUMNS = 500 };

/* ---- fields ---- */

/* Of hone simulate: "25 MB"; 0: what is right where the config says nothing. */
static inline const char *report_show_bucket(double mb, number_text out)
{
    if (mb > 0)
        snprintf(out, sizeof(number_text), "%.0f MB", mb);
    else
        snprintf(out, sizeof(number_text), "own size");
    return out;
}

static inline double num(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

static inline const char *word(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "";
}

static inline bool yes(const json_t *j, const char *key) { return json_is_true(json_object_get(j, key)); }
static inline size_t length(const json_t *j, const char *key) { return json_array_size(json_object_get(j, key)); }

/* ---- cells ---- */

static inline void put_words(FILE *to, const char *text) { report_put_markdown_cut(to, *text ? text : "–", SENTENCE_COLUMNS); }

static inline void put_times(FILE *to, double x)
{
    number_text n;
    fputs(report_show_speedup(x, n), to);
}

static inline void put_percent(FILE *to, double part)
{
    if (isfinite(part))
        fprintf(to, "%+.1f %%", 100 * part);
    else
        fputs("–", to);
}

#endif
