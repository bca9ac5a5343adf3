/* Inside the report room: derived numbers, text that is safe to show, JSON that is always valid. */
#ifndef HONE_REPORT_REPORT_INT_H
#define HONE_REPORT_REPORT_INT_H

#include <jansson.h>
#include <stddef.h>

#include "core/show.h"
#include "report/report.h"

/* ---- derive.c: numbers that follow from the profile. NAN where there is nothing to divide by. ---- */

double report_ratio(double a, double b);                /* a / b, NAN unless both are finite and b is above 0 */
double report_op_work_us(const struct profile *p);      /* self time of all ops */
double report_split_us(const struct profile *p);        /* sum of the split */
double report_gaps_us(const struct profile *p);         /* sum of the gaps */
double report_gflops(double flops, double us);          /* achieved GFLOP/s */
double report_gb_per_s(double bytes, double us);
double report_memory_gb_per_s(const struct profile *p); /* of main memory, or of the last level there is */
double report_taken_bytes(const struct profile *p);
double report_samples_per_step(const struct profile *p);
double report_tokens_per_step(const struct profile *p);         /* with padding; of rows that samples share, fewer than samples x seq */
double report_memory_total(const struct profile_memory_point *m);
int report_op_runs(const struct profile *p, const struct profile_op *op);       /* per step */
int *report_ops_by_time(const struct profile *p);       /* (n_ops) indices, largest self time first; free() it */
const char *report_level_name(int level);               /* "L1", ..., "memory" */
const char *report_op_phase(const struct profile_op *op);
const char *report_kind_target(const struct profile *p, const char *kind);      /* rule of the finding about most of its time; NULL */
double report_op_phase_flops(const struct profile *p, enum phase phase);        /* gradients count as backward wherever they are made */
void report_put_recording(FILE *to, const struct profile *p);   /* "recording costs 0.7 %" */
void report_put_padding(FILE *to, const struct profile *p);         /* how many tokens are of samples, where not all are */
char *report_peak_words(const struct profile *p);       /* "Values take ... at their peak, while ..."; free() it */
void report_put_memory(FILE *to, const struct profile *p);      /* "7.5 MB planned, values 6.3 MB of it ..." */

/* ---- text.c ---- */

/* Valid UTF-8 without control characters: what is neither becomes U+FFFD, white space becomes a space. NULL is "".
 * Owned by the caller. */
char *report_clean(const char *text);
char *report_utf8(const char *text);                    /* the same, but control characters stay */
char *report_cut(const char *text, size_t columns);     /* cleaned, an ellipsis for what is beyond; owned by the caller */
char *report_cut_middle(const char *text, size_t columns, size_t end);    /* the same, with so many columns of its end behind the ellipsis */
void report_put_text(FILE *to, const char *text);       /* cleaned */
void report_put_html(FILE *to, const char *text);       /* cleaned, as HTML text or attribute */
void report_put_markdown(FILE *to, const char *text);   /* cleaned, as Markdown that stays text, in tables too */
void report_put_markdown_cut(FILE *to, const char *text, size_t columns);

/* ---- columns.c: of cleaned text in a terminal ---- */

struct columns_range {
    uint32_t first, last, columns;
};
extern const struct columns_range columns_ranges[];     /* characters that do not have one, in order: columns_table.c */
extern const size_t columns_ranges_n;

size_t report_columns(const char *clean);
size_t report_next_columns(const char **clean);         /* of the first character and the marks on it, behind which *clean is then */
const char *report_within(const char *clean, size_t columns);   /* the end of what fits into so many */

/* ---- text.c ---- */

/* Numbers for people, in three digits or so; a dash for what is not finite. They return `out`. The first four are those of core/show.h. */
const char *report_show_us(double us, number_text out);         /* "12.3 ms" */
const char *report_show_bytes(double bytes, number_text out);   /* "45.1 MB" */
const char *report_show_count(double n, number_text out);       /* "1.25 M" */
const char *report_show_number(double x, number_text out);      /* "12.3" */
struct diff_number;
bool report_diff_known(const struct diff_number *n);                /* of one of the two, at least */
const char *report_show_diff(const struct diff_number *of, double value, number_text out);
const char *report_show_percent(double part, number_text out);  /* 0.123 is "12.3 %" */
const char *report_show_rank(int rank, number_text out);        /* "3"; below 0: not known */
const char *report_show_speedup(double x, number_text out);     /* "1.25×" */

/* ---- json.c ---- */

json_t *report_number(double x);                              /* null when not finite */
json_t *report_words(const char *text);                       /* null for NULL; never invalid UTF-8 */
json_t *report_name(const char *text);                        /* the same, cut where it is longer than a name can be */
enum status report_put_json(json_t *document, size_t flags, FILE *to, struct error *err);     /* releases the document */

json_t *report_array(json_t *array, json_t *item);         /* appends and returns the array; NULL: no memory */
json_t *report_merge(json_t *object, json_t *more);        /* puts more's fields in and returns the object; the same */

/* ---- pieces.c: what report.json of a profile and of a trace have in common ---- */

struct answers {
    const char *headline, *bound_by, *largest, *first_action, *realistic_gain;
    const char *warning;                /* stands before the others; NULL: none */
};
struct answers report_profile_answers(const struct profile *p);
struct answers report_trace_answers(const struct diagnosis *d);
/* What people call the trace: its file or folder without the path to it, or the command that was watched. Returns `out`. */
enum { TITLE_MOST = 256 };
const char *report_trace_title(const struct diagnosis *d, char out[TITLE_MOST]);
/* What busy means where there are several devices; "" where there is one. */
enum { DEVICES_NOTE_MOST = 256 };
const char *report_trace_devices_note(const struct diagnosis *d, char out[DEVICES_NOTE_MOST]);
/* Whether the profiler's cost of an event is more than rounding leaves. */
bool report_trace_shows_cost(const struct diagnosis *d);
/* Why the mean step is not as long as a step as recorded; "" where it is. */
enum { RECORDED_NOTE_MOST = 320 };
const char *report_trace_recorded_note(const struct diagnosis *d, char out[RECORDED_NOTE_MOST]);
/* "1000 of 400000 steps are listed: ..."; empty where all are. Returns `out`. */
enum { STEPS_NOTE_MOST = 256 };
const char *report_trace_steps_note(const struct diagnosis *d, char out[STEPS_NOTE_MOST]);
/* What the shares of ops are of, and how much of it is no op's where that is much; empty where there are no ops. Returns `out`. */
enum { OPS_NOTE_MOST = 256 };
const char *report_trace_ops_note(const struct diagnosis *d, char out[OPS_NOTE_MOST]);

enum { PROFILE_SCHEMA = 2, TRACE_SCHEMA = 1 };
json_t *report_head(const char *kind, int schema, const char *version, const struct answers *answers);     /* answers: may be NULL */
json_t *report_parts(const struct profile_part *parts, int n, double whole);

/* ---- plan.c: what to do ---- */

struct plan {
    const struct finding *findings;
    int n;
    const struct plan_phase *phases;
    int n_phases;
    bool trace;                         /* fixes are PyTorch code; else sentences, most of which begin with options of hone */
};
struct plan report_profile_plan(const struct profile *p);
struct plan report_trace_plan(const struct diagnosis *d);
json_t *report_plan(const struct plan *p);                  /* counts, findings, phases, checks */
int report_count(const struct plan *p, enum severity severity);
enum { COUNTS_MOST = 96 };
const char *report_counts(const struct plan *p, char out[COUNTS_MOST]);     /* "3 findings: 1 high, 2 low"; returns `out` */
const char *report_option(struct arena *a, const struct finding *f);        /* "--set train.clip=1.0"; NULL: the fix is no option */
bool report_in_phase(const struct plan *p, const struct plan_phase *phase, int i);     /* its finding i is there */
/* The list to check off: a line per finding that is worth it, then the last ones. */
const char *report_share_of(const struct finding *f);        /* what its share and gain are of: "the step" */
bool report_is_checked(const struct finding *f);
const char *report_check(struct arena *a, const struct finding *f);
const char *const *report_last_checks(const struct plan *p);        /* ends with NULL */

/* ---- markdown_pieces.c: the same for report.md ---- */

void report_markdown_top(FILE *to, const char *what, const char *name, const struct answers *answers, const struct plan *plan);
void report_markdown_bar(FILE *to, double part);           /* of 0 to 1 */
void report_markdown_part(FILE *to, const struct profile_part *part, double whole);    /* a row: name, time, share, bar */
void report_markdown_fact(FILE *to, const char *label, const char *text);              /* a row of two columns */
void report_markdown_curve(FILE *to, const double *values, int n, const char *words);  /* a line of n blocks, then the words */
void report_markdown_code(FILE *to, const char *code, int indent, int lines);          /* a block of at most so many lines */

/* ---- markdown_plan.c ---- */

void report_markdown_plan(FILE *to, const struct plan *p);
void report_markdown_layers(FILE *to, const struct profile *p);        /* markdown_layers.c */

/* ---- document.c, timeline.c: everything, as report.json has it ---- */

json_t *report_document(const struct profile *p);
json_t *report_timeline(const struct profile *p);
json_t *report_peaks(const struct profile *p);
json_t *report_op(const struct profile *p, int op);

/* ---- ranks.c: several ranks beside each other; nothing of one ---- */

json_t *report_ranks(const struct profile *p);             /* an empty list */

/* ---- run_time.c: the whole run in seconds, and what quick fixes would save of it ---- */

json_t *report_run(const struct profile *p);               /* null where it is not known */
void report_markdown_run(FILE *to, const struct profile *p);
const char *report_show_seconds(double s, number_text out);             /* "12.3 ms", "12.3 s", "10:05 min", "2:03:04 h" */
void report_markdown_ranks(FILE *to, const struct profile *p);

/* ---- trace_document.c, trace_timeline.c: the same of an imported trace ---- */

json_t *report_trace_document(const struct diagnosis *d);
json_t *report_trace_timeline(const struct diagnosis *d);

/* ---- trace_markdown_tables.c: the parts of its report.md that are long tables or measured over time ---- */

void report_trace_markdown_tables(FILE *to, const struct diagnosis *d);
json_t *report_trace_collectives(const struct diagnosis *d);            /* trace_collectives.c */
void report_markdown_collectives(FILE *to, const struct diagnosis *d);

/* ---- made by the build from src/report/page and d3 ---- */

struct asset {
    const char *name;
    const unsigned char *data;
    size_t size;
};
extern const struct asset report_assets[];                  /* ends with a NULL name */

#endif
