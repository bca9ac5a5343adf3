/* The cells of the table of runs. */
#include <stdlib.h>
#include <time.h>

#include "report/runs_text_int.h"

static const struct { const char *label; bool number; } fixed[RUNS_FIXED] = {
    {"run", false}, {"state", false}, {"step", true}, {"loss", true}, {"val loss", true}, {"tokens/s", true}, {"device", false}, {"when", false},
};

int runs_columns(const json_t *runs)
{
    const size_t keys = length(runs, "keys");
    return RUNS_FIXED + (int)(keys < RUNS_KEYS ? keys : RUNS_KEYS);
}

bool runs_is_number(int column) { return column >= RUNS_FIXED || fixed[column].number; }

static const char *key_at(const json_t *runs, int i)
{
    const char *key = json_string_value(json_array_get(json_object_get(runs, "keys"), (size_t)i));
    return key ? key : "";
}

void runs_fill_head(struct runs_row *row, const json_t *runs)
{
    for (int i = 0; i < runs_columns(runs); i++)
        snprintf(row->cell[i], RUNS_CELL, "%s", i < RUNS_FIXED ? fixed[i].label : key_at(runs, i - RUNS_FIXED));
}

const char *show_loss(double loss, number_text out)
{
    if (!isfinite(loss))
        return strcpy(out, "–");
    snprintf(out, NUMBER_TEXT, fabs(loss) < 1e4 ? "%.4f" : "%.4g", loss);
    return out;
}

/* In the time of this place. */
static void put_when(char cell[RUNS_CELL], const char *when)
{
    struct tm utc = {0}, here;
    const char *end = strptime(when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    const time_t at = end ? timegm(&utc) : 0;
    if (!end || !localtime_r(&at, &here) || !strftime(cell, RUNS_CELL, "%Y-%m-%d %H:%M", &here))
        snprintf(cell, RUNS_CELL, "–");
}

/* At most so many columns, without what could steer a terminal. */
static void put_cut(char cell[RUNS_CELL], const char *text, size_t columns)
{
    char *t = report_cut(*text ? text : "–", columns);
    snprintf(cell, RUNS_CELL, "%s", t);
    free(t);
}

static void put_step(char cell[RUNS_CELL], const json_t *run)
{
    const double step = num(run, "step"), steps = num(run, "steps");
    if (isfinite(steps))
        snprintf(cell, RUNS_CELL, "%.0f/%.0f", step, steps);
    else
        snprintf(cell, RUNS_CELL, "%.0f", step);
}

/* "NVIDIA H200", "cpu ×2": with as many threads; "cpu ×1, 4 ranks": on each of them. */
static void put_device(char cell[RUNS_CELL], const json_t *run)
{
    char *device = report_cut(word(run, "device"), 24);
    const double threads = num(run, "threads"), ranks = num(run, "ranks");
    int used;
    if (!strcmp(device, "cpu") && isfinite(threads))
        used = snprintf(cell, RUNS_CELL, "cpu ×%.0f", threads);
    else
        used = snprintf(cell, RUNS_CELL, "%s", *device ? device : "–");
    if (ranks > 1 && used < RUNS_CELL)
        snprintf(cell + used, (size_t)(RUNS_CELL - used), ", %.0f ranks", ranks);
    free(device);
}

void runs_fill(struct runs_row *row, const json_t *runs, const json_t *run)
{
    const json_t *config = json_object_get(run, "config");
    number_text n;
    put_cut(row->cell[0], word(run, "name"), RUNS_NAME);
    put_cut(row->cell[1], word(run, "state"), 10);
    put_step(row->cell[2], run);
    snprintf(row->cell[3], RUNS_CELL, "%s", !strcmp(word(run, "state"), "nan") ? "nan" : show_loss(num(run, "loss"), n));
    snprintf(row->cell[4], RUNS_CELL, "%s", show_loss(num(run, "val_loss"), n));
    snprintf(row->cell[5], RUNS_CELL, "%s", report_show_count(num(run, "tokens_per_s"), n));
    put_device(row->cell[6], run);
    put_when(row->cell[7], word(run, "when"));
    for (int i = RUNS_FIXED; i < runs_columns(runs); i++)
        put_cut(row->cell[i], word(config, key_at(runs, i - RUNS_FIXED)), 18);
}

void runs_other_keys(const json_t *runs, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = RUNS_KEYS; i < length(runs, "keys") && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > RUNS_KEYS ? ", " : "", key_at(runs, (int)i));
}

const char *runs_note(const json_t *run)
{
    return *word(run, "reason") ? word(run, "reason") : *word(run, "warning") ? word(run, "warning") : NULL;
}
