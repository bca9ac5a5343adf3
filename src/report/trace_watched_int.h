/* A trace that hone recorded itself, in a program that it watched: its steps undisturbed and recorded, and what was tried in it. */
#ifndef HONE_REPORT_TRACE_WATCHED_INT_H
#define HONE_REPORT_TRACE_WATCHED_INT_H

#include "report/terminal_int.h"

/* All of them say nothing of a trace that somebody brought. */
json_t *report_watched(const struct diagnosis *d);              /* null then */
void report_markdown_watched(FILE *to, const struct diagnosis *d);
void screen_put_watched(const struct screen *s, const struct diagnosis *d);

/* ---- trace_trial.c ---- */

json_t *report_trial(const struct diagnosis *d);                /* with "predicted_speedup" in every switch; null where nothing was tried */
void report_markdown_trial(FILE *to, const struct diagnosis *d);
void screen_put_trial(const struct screen *s, const struct diagnosis *d);

#endif
