/* What the files of the room share. Of documents NULL: no memory. */
#ifndef HONE_RUNS_RUNS_INT_H
#define HONE_RUNS_RUNS_INT_H

#include "runs/runs.h"

/* What is there of a run of a sweep already: sets r->kept. */
struct sweep_run;
enum status sweep_look(struct sweep_run *r, struct error *err);

json_t *runs_number(double x);                          /* null: not finite */
json_t *runs_whole(int64_t n);                          /* null: not above 0 */
json_t *runs_text(const char *text);                    /* null: none; any bytes */
json_t *runs_row(const struct runs *all, const struct run_keys *k, int i);
json_t *runs_keys(const struct run_keys *k);

#endif
