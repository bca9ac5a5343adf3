/* The profile for people and programs: a page that opens offline, Markdown, JSON, the terminal. docs/report.md has the
 * fields of every JSON file with their units. Nothing in a name (config, trace) can become markup, a control sequence or
 * invalid UTF-8 here. */
#ifndef HONE_REPORT_REPORT_H
#define HONE_REPORT_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "analyze/analyze.h"
#include "analyze/diagnosis.h"
#include "core/error.h"

/* Writes report.html, report.md, report.json, flops_profile.json, computational_intensity.json and roofline_data.json
 * into a folder that exists. Every byte is checked and synced; an error names the file. A caller who wants all or
 * nothing writes to a temporary folder and renames it. */
enum status report_write(const struct profile *p, const char *folder, struct error *err);

/* The first screen: with colours and bars, or plain. */
void report_print_terminal(const struct profile *p, FILE *to, bool color);

/* The files one by one. They write to a stream whose errors the caller checks (ferror, fclose). They fail when memory or
 * random bytes cannot be had. */
enum status report_write_html(const struct profile *p, FILE *to, struct error *err);
enum status report_write_markdown(const struct profile *p, FILE *to, struct error *err);
enum status report_write_operations(const struct profile *p, FILE *to, struct error *err);     /* Markdown: tables of kinds and of ops alone */
enum status report_write_json(const struct profile *p, FILE *to, struct error *err);
enum status report_write_flops(const struct profile *p, FILE *to, struct error *err);
enum status report_write_intensity(const struct profile *p, FILE *to, struct error *err);
enum status report_write_roofline(const struct profile *p, FILE *to, struct error *err);

/* ---- of an imported trace ---- */

/* Writes report.html, report.md and report.json into a folder that exists; as report_write. */
enum status report_trace_write(const struct diagnosis *d, const char *folder, struct error *err);
void report_trace_print_terminal(const struct diagnosis *d, FILE *to, bool color);
void report_trial_print_terminal(const struct watched *w, FILE *to, bool color);        /* what was tried in a program of which nothing was recorded */
enum status report_trace_write_html(const struct diagnosis *d, FILE *to, struct error *err);
enum status report_trace_write_markdown(const struct diagnosis *d, FILE *to, struct error *err);
enum status report_trace_write_json(const struct diagnosis *d, FILE *to, struct error *err);

/* Holds a diagnosis against the report.json of an earlier one, of the same device: d->baseline. `limit`: 0.05 allows steps of 5 % more. */
enum status report_baseline(struct diagnosis *d, const char *path, double limit, struct error *err);
/* Why a comparison is of steps as recorded. */
#define REPORT_ONE_GIVEN "As recorded: the time without the profiler was given of one of the two only"
enum { BASELINE_WORDS = 400 };
const char *report_baseline_words(const struct baseline *b, char out[BASELINE_WORDS]);

/* ---- of hone tune ---- */

/* `tune` is its report.json, which is all that the page and the text are made of. What is missing in it is shown as a dash. */
enum status report_tune_write_html(const json_t *tune, FILE *to, struct error *err);
enum status report_tune_write_markdown(const json_t *tune, FILE *to, struct error *err);

/* ---- of hone forget: as those of tune ---- */

enum status report_forget_write_html(const json_t *forget, FILE *to, struct error *err);
enum status report_forget_write_markdown(const json_t *forget, FILE *to, struct error *err);
/* The table, the losses and the verdict. */
void report_forget_print_terminal(const json_t *forget, FILE *to, bool color);

/* ---- of hone simulate: as those of tune ---- */

enum status report_simulate_write_html(const json_t *simulated, FILE *to, struct error *err);
enum status report_simulate_write_markdown(const json_t *simulated, FILE *to, struct error *err);
void report_simulate_print_terminal(const json_t *simulated, FILE *to, bool color);

/* ---- of hone runs and hone compare ---- */

/* The table of runs, and what there is to say of them; `runs` is the document of src/runs. */
void report_runs_print_terminal(const json_t *runs, FILE *to, bool color);
/* Of runs that are compared: their curves over each other, and speed and memory. */
void report_compare_print_terminal(const json_t *compared, FILE *to, bool color);
enum status report_compare_write_html(const json_t *compared, FILE *to, struct error *err);
enum status report_compare_write_markdown(const json_t *compared, FILE *to, struct error *err);

/* The page of a run that goes on, which asks the place that it came from for data; `run` has its name and a headline. */
enum status report_live_write_html(const json_t *run, FILE *to, struct error *err);
void report_put_cut(FILE *to, const char *text, size_t columns);         /* safe to show, with an ellipsis for what is beyond */
void report_put_padded(FILE *to, const char *text, size_t columns);      /* safe to show, with spaces up to so many columns; whole where it has more */
/* Numbers as a line of so many blocks, the lowest of them at the bottom; what is not finite is a space. */
void report_put_blocks(FILE *to, const double *numbers, int n, int columns);

/* Two traces side by side. */
void report_diff_print_terminal(const struct trace_diff *d, FILE *to, bool color);
enum status report_diff_write_json(const struct trace_diff *d, FILE *to, struct error *err);
enum status report_diff_write_markdown(const struct trace_diff *d, FILE *to, struct error *err);

#endif
