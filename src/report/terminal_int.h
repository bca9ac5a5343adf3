/* Drawing in a terminal: what the screens of the report room share. Every text is cleaned on its way; colours and bars
 * are only drawn where the screen has colours. */
#ifndef HONE_REPORT_TERMINAL_INT_H
#define HONE_REPORT_TERMINAL_INT_H

#include "report/report_int.h"

enum { SCREEN_COLUMNS = 100, SCREEN_BAR = 24, SCREEN_NAME = 20, SCREEN_INDENT = 13 };  /* columns */

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define BLUE "\033[34m"
#define OFF "\033[0m"

struct screen {
    FILE *to;
    bool color;
};

const char *screen_style(const struct screen *s, const char *code);     /* "" without colours */
const char *screen_severity_style(const struct screen *s, enum severity severity);
/* A kernel's name without what most of them begin with, which says nothing about them. */
const char *screen_kernel_name(const char *name);

void screen_put_padded(const struct screen *s, const char *text, size_t columns);   /* exactly; cut with an ellipsis */
void screen_put_cut(const struct screen *s, const char *text, size_t columns);      /* at most */
void screen_put_right(const struct screen *s, const char *text, size_t columns);    /* clean text; µ is one column */
/* In lines of SCREEN_COLUMNS at most, all but the first indented (the cursor is there already); ends the line. A word
 * that fits no line is broken. */
void screen_put_wrapped(const struct screen *s, const char *text, size_t indent);
void screen_put_bar(const struct screen *s, double part, int width, const char *code);      /* of eighths */

void screen_put_label(const struct screen *s, const char *label);       /* of SCREEN_INDENT columns */
void screen_put_heading(const struct screen *s, const char *text, const char *more);
void screen_put_answer(const struct screen *s, const char *label, const char *text);        /* nothing for no text */
/* A name, its bar, its time and its share of the whole; does not end the line. */
void screen_put_part(const struct screen *s, const char *name, double us, double whole, const char *code);

void screen_put_iteration(const struct screen *s, const struct diagnosis *d);           /* trace_iteration.c */
void screen_put_collectives(const struct screen *s, const struct diagnosis *d);         /* trace_collectives.c */
void screen_put_ranks(const struct screen *s, const struct profile *p);     /* ranks.c */
void screen_put_run(const struct screen *s, const struct profile *p);       /* run_time.c */

/* ---- trace_views_terminal.c ---- */

void screen_put_views(const struct screen *s, const struct diagnosis *d);
void screen_put_baseline(const struct screen *s, const struct baseline *b);     /* nothing without one */

/* ---- trace_plan_terminal.c ---- */

void screen_put_findings(const struct screen *s, const struct diagnosis *d);
void screen_put_roadmap(const struct screen *s, const struct plan *p);      /* of a profile, too */

#endif
