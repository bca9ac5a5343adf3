/* The table of hone runs, which hone sweep ends with and hone compare begins with. */
#include <stdlib.h>

#include "core/arena.h"
#include "report/runs_text_int.h"
#include "report/terminal_int.h"

struct table {
    struct runs_row *row;               /* the head, then one for each run */
    size_t n;
    int columns;
    size_t width[RUNS_COLUMNS];
};

static void fill(struct table *t, const json_t *runs)
{
    const json_t *list = json_object_get(runs, "runs");
    t->n = json_array_size(list) + 1;
    t->columns = runs_columns(runs);
    t->row = xcalloc(t->n, sizeof *t->row);
    runs_fill_head(&t->row[0], runs);
    for (size_t i = 1; i < t->n; i++)
        runs_fill(&t->row[i], runs, json_array_get(list, i - 1));
    for (size_t i = 0; i < t->n; i++)
        for (int c = 0; c < t->columns; c++) {
            const size_t width = report_columns(t->row[i].cell[c]);
            t->width[c] = width > t->width[c] ? width : t->width[c];
        }
}

static const char *state_style(const char *state)
{
    return !strcmp(state, "running") ? BLUE : !strcmp(state, "finished") ? GREEN : !strcmp(state, "stopped") ? YELLOW : RED;
}

/* The last column is not padded. */
static void put_cell(const struct screen *s, const struct table *t, size_t row, int column)
{
    const char *text = t->row[row].cell[column];
    const size_t pad = t->width[column] - report_columns(text);
    const char *style = row == 0 ? DIM : column == 1 ? state_style(text) : NULL;
    fprintf(s->to, "%s%*s%s%s%s", column ? "  " : "", runs_is_number(column) ? (int)pad : 0, "", style ? screen_style(s, style) : "", text,
            style ? screen_style(s, OFF) : "");
    if (!runs_is_number(column) && column + 1 < t->columns)
        fprintf(s->to, "%*s", (int)pad, "");
}

static void put_table(const struct screen *s, const struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        for (int c = 0; c < t->columns; c++)
            put_cell(s, t, i, c);
        fputc('\n', s->to);
    }
}

static void put_notes(const struct screen *s, const json_t *runs)
{
    const json_t *run;
    size_t i;
    json_array_foreach(json_object_get(runs, "runs"), i, run) {
        if (!runs_note(run))
            continue;
        fprintf(s->to, "%s", screen_style(s, YELLOW));
        report_put_text(s->to, word(run, "name"));
        fprintf(s->to, "%s: ", screen_style(s, OFF));
        report_put_text(s->to, runs_note(run));
        fputc('\n', s->to);
    }
}

static void put_best(const struct screen *s, const json_t *best)
{
    number_text n;
    fprintf(s->to, "%s", screen_style(s, BOLD));
    report_put_text(s->to, word(best, "names"));
    fprintf(s->to, "%s%s, %s %s", screen_style(s, OFF), num(best, "tied") > 1 ? " are tied" : "", strcmp(word(best, "by"), "loss") ? "validation loss" : "loss", show_loss(num(best, "loss"), n));
}

/* Losses of other data, or of other tokens, are other numbers: there each data has a best of its own. */
static void put_bests(const struct screen *s, const json_t *runs)
{
    const json_t *bests = json_object_get(runs, "bests"), *best;
    size_t i;
    if (length(runs, "runs") < 2 || !json_array_size(bests) || (json_array_size(bests) == 1 && *word(runs, "headline")))
        return;                         /* one is no choice, and a headline names the best */
    if (json_array_size(bests) == 1) {
        const double of = num(json_array_get(bests, 0), "runs");
        const char *loss = strcmp(word(json_array_get(bests, 0), "by"), "loss") ? "validation loss" : "loss";
        if (of < (double)length(runs, "runs") && of == 1)
            fprintf(s->to, "the only one that finished with a %s: ", loss);
        else if (of < (double)length(runs, "runs"))
            fprintf(s->to, "best of the %.0f that finished with a %s: ", of, loss);
        else
            fputs("best: ", s->to);
        put_best(s, json_array_get(bests, 0));
        fputc('\n', s->to);
        return;
    }
    fputs("best of those that finished, for each data (losses of different data or tokens cannot be compared):\n", s->to);
    json_array_foreach(bests, i, best) {
        fputs("  ", s->to);
        report_put_text(s->to, word(best, "data"));
        fputs(": ", s->to);
        put_best(s, best);
        fprintf(s->to, num(best, "runs") == 1 ? " (the only one)\n" : " (of %.0f)\n", num(best, "runs"));
    }
}

/* What is compared there may be of other samples, though of the same data. */
static void put_unlike(const struct screen *s, const json_t *runs)
{
    const json_t *best;
    bool unlike = false;
    size_t i;
    json_array_foreach(json_object_get(runs, "bests"), i, best)
        unlike |= yes(best, "unlike_samples");
    if (unlike && !*word(runs, "headline"))         /* which says it */
        fputs("their validation losses may be of different samples, as eval.batches × eval.batch_size × model.seq differ; hone eval RUN takes all there are\n", s->to);
}

void report_runs_print_terminal(const json_t *runs, FILE *to, bool color)
{
    const struct screen s = {to, color};
    struct table t = {0};
    char others[1024];
    fill(&t, runs);
    put_table(&s, &t);
    free(t.row);
    runs_other_keys(runs, others, sizeof others);
    if (*others) {
        fputs("also differ (--json has them): ", to);
        screen_put_wrapped(&s, others, 2);
    }
    put_notes(&s, runs);
    put_bests(&s, runs);
    put_unlike(&s, runs);
    if (yes(runs, "more"))
        fputs("there are more runs; give a folder further down\n", to);
}
