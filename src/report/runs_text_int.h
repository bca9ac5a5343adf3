/* The table of runs as text: what the terminal and report.md of hone runs, sweep and compare share. */
#ifndef HONE_REPORT_RUNS_TEXT_INT_H
#define HONE_REPORT_RUNS_TEXT_INT_H

#include "report/fields_int.h"

enum { RUNS_FIXED = 8, RUNS_KEYS = 6, RUNS_COLUMNS = RUNS_FIXED + RUNS_KEYS, RUNS_NAME = 40 };       /* RUNS_NAME: columns of a run's name */
enum { RUNS_CELL = 4 * (RUNS_NAME + 1) + 1 };           /* bytes: with an ellipsis, of characters of four bytes */

struct runs_row { char cell[RUNS_COLUMNS][RUNS_CELL]; };

/* How many columns the table has: those of every run, and of keys that differ the first few. */
int runs_columns(const json_t *runs);
/* Whether a column holds numbers, which are set to the right. */
bool runs_is_number(int column);
void runs_fill_head(struct runs_row *row, const json_t *runs);
void runs_fill(struct runs_row *row, const json_t *runs, const json_t *run);
/* "train.warmup, data.seed": keys that differ and have no column; empty: all have. */
void runs_other_keys(const json_t *runs, char *out, size_t size);

const char *show_loss(double loss, number_text out);            /* "0.6123", or a dash */
/* What there is to say of a run: why it failed, what could not be read; NULL: nothing. */
const char *runs_note(const json_t *run);

#endif
