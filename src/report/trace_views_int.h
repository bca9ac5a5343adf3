/* An imported trace by ops against peaks, by modules and by Python functions. */
#ifndef HONE_REPORT_TRACE_VIEWS_INT_H
#define HONE_REPORT_TRACE_VIEWS_INT_H

#include <stdlib.h>

#include "report/report_int.h"

json_t *report_trace_views(const struct diagnosis *d);          /* fields of report.json */
/* Of a GPU in TFLOP/s, of a CPU in GFLOP/s. */
struct rate_unit {
    const char *prefix;
    double of_tera;
    const char *whose, *time;               /* "device", "GPU" */
    bool cpu;
    const char *measured;                   /* where a peak is from that was not given: a device's is known by its name */
};
struct rate_unit report_rate_unit(const struct diagnosis *d);
char *report_mfu_words(const struct diagnosis *d);              /* "41.2 % of 989 TFLOP/s (16 bits), ..."; NULL: unknown. free() it */
void report_trace_markdown_views(FILE *to, const struct diagnosis *d);

/* ---- trace_iteration.c ---- */

json_t *report_trace_iteration(const struct diagnosis *d);      /* a list, empty where phases are not known */
void report_markdown_iteration(FILE *to, const struct diagnosis *d);

/* ---- baseline.c ---- */

json_t *report_baseline_json(const struct baseline *b);         /* null without one */
void report_baseline_markdown(FILE *to, const struct baseline *b);

#endif
