/* Inside report.md of hone tune: its own words, and the parts that stand in a file of their own. */
#ifndef HONE_REPORT_TUNE_MARKDOWN_INT_H
#define HONE_REPORT_TUNE_MARKDOWN_INT_H

#include "report/fields_int.h"

/* Over a column of the config that was given. */
static inline const char *given_label(const json_t *j)
{
    return strcmp(word(j, "given"), "the program without passes") ? "as given" : "without passes";
}

/* ---- tune_markdown_tables.c, tune_markdown_sizes.c ---- */

void tune_put_points(FILE *to, const json_t *j);
void tune_put_gates(FILE *to, const json_t *j);
void tune_put_sizes(FILE *to, const json_t *j);

#endif
