/* Inside report.md of hone tune: reading its document, cells, and the parts that stand in a file of their own. */
#ifndef HONE_REPORT_TUNE_MARKDOWN_INT_H
#define HONE_REPORT_TUNE_MARKDOWN_INT_H

#include <math.h>
#include <string.h>

#include "report/report_int.h"

enum { NAME_COLUMNS = 160, SENTENCE_COLUMNS = 500 };

/* ---- fields; what is missing is NAN or "" ---- */

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

/* Over a column of the config that was given. */
static inline const char *given_label(const json_t *j)
{
    return strcmp(word(j, "given"), "the program without passes") ? "as given" : "without passes";
}

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

/* ---- tune_markdown_tables.c: before and after, the gates, other sizes ---- */

void tune_put_points(FILE *to, const json_t *j);
void tune_put_gates(FILE *to, const json_t *j);
void tune_put_sizes(FILE *to, const json_t *j);

#endif
