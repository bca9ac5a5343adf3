/* Inside the report room: derived numbers, text that is safe to show, JSON that is always valid. */
#ifndef HONE_REPORT_REPORT_INT_H
#define HONE_REPORT_REPORT_INT_H

#include <jansson.h>
#include <stddef.h>

#include "report/report.h"

/* ---- derive.c: numbers that follow from the profile. NAN where there is nothing to divide by. ---- */

double report_ratio(double a, double b);                /* a / b, NAN unless both are finite and b is above 0 */
double report_op_work_us(const struct profile *p);      /* self time of all ops */
double report_split_us(const struct profile *p);        /* sum of the split */
double report_gaps_us(const struct profile *p);         /* sum of the gaps */
double report_gflops(double flops, double us);          /* achieved GFLOP/s */
double report_gb_per_s(double bytes, double us);
double report_memory_gb_per_s(const struct profile *p); /* of main memory, or of the last level there is */
double report_samples_per_step(const struct profile *p);
double report_overhead_percent(const struct profile *p);        /* what recording costs */
double report_memory_total(const struct profile_memory_point *m);
int report_op_runs(const struct profile *p, const struct profile_op *op);       /* per step */
int *report_ops_by_time(const struct profile *p);       /* (n_ops) indices, largest self time first; free() it */
const char *report_level_name(int level);               /* "L1", ..., "memory" */
const char *report_op_phase(const struct profile_op *op);
char *report_peak_words(const struct profile *p);       /* "Memory peaks at ... while ..."; free() it */

/* ---- text.c ---- */

enum { NUMBER_TEXT = 32 };
typedef char number_text[NUMBER_TEXT];

/* Valid UTF-8 without control characters: what is neither becomes U+FFFD, white space becomes a space. NULL is "".
 * Owned by the caller. */
char *report_clean(const char *text);
char *report_utf8(const char *text);                    /* the same, but control characters stay */
void report_put_text(FILE *to, const char *text);       /* cleaned */
void report_put_html(FILE *to, const char *text);       /* cleaned, as HTML text or attribute */
void report_put_markdown(FILE *to, const char *text);   /* cleaned, as Markdown that stays text, in tables too */
size_t report_columns(const char *clean);               /* code points */

/* Numbers for people, in three digits or so; a dash for what is not finite. They return `out`. */
const char *report_show_us(double us, number_text out);         /* "12.3 ms" */
const char *report_show_bytes(double bytes, number_text out);   /* "45.1 MB" */
const char *report_show_count(double n, number_text out);       /* "1.25 M" */
const char *report_show_percent(double part, number_text out);  /* 0.123 is "12.3 %" */
const char *report_show_number(double x, number_text out);      /* "12.3" */
const char *report_show_speedup(double x, number_text out);     /* "1.25×" */

/* ---- json.c ---- */

json_t *report_number(double x);                              /* null when not finite */
json_t *report_words(const char *text);                       /* null for NULL; never invalid UTF-8 */
enum status report_put_json(json_t *document, size_t flags, FILE *to, struct error *err);     /* releases the document */

json_t *report_array(json_t *array, json_t *item);         /* appends and returns the array; NULL: no memory */

/* ---- document.c, timeline.c: everything, as report.json has it ---- */

json_t *report_document(const struct profile *p);
json_t *report_timeline(const struct profile *p);
json_t *report_peaks(const struct peaks *peaks);
json_t *report_op(const struct profile *p, int op);

/* ---- made by the build from src/report/page and d3 ---- */

struct asset {
    const char *name;
    const unsigned char *data;
    size_t size;
};
extern const struct asset report_assets[];                  /* ends with a NULL name */

#endif
