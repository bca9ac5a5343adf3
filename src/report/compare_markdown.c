/* report.md of hone compare: the table, what each run ended with, and where configs differ. */
#include "report/runs_text_int.h"

static void put_row(FILE *to, const struct runs_row *row, int columns)
{
    fputc('|', to);
    for (int i = 0; i < columns; i++) {
        fputc(' ', to);
        report_put_markdown(to, row->cell[i]);
        fputs(" |", to);
    }
    fputc('\n', to);
}

static void put_table(FILE *to, const json_t *j)
{
    struct runs_row row;
    const json_t *run;
    size_t i;
    const int columns = runs_columns(j);
    runs_fill_head(&row, j);
    put_row(to, &row, columns);
    fputc('|', to);
    for (int c = 0; c < columns; c++)
        fputs(runs_is_number(c) ? "---:|" : "---|", to);
    fputc('\n', to);
    json_array_foreach(json_object_get(j, "runs"), i, run) {
        runs_fill(&row, j, run);
        put_row(to, &row, columns);
    }
}

static void put_figures(FILE *to, const json_t *j)
{
    const json_t *run;
    size_t i;
    number_text n;
    fputs("\n## Figures\n\n| run | best val loss | at step | tokens | training time | planned | peak |\n|---|---:|---:|---:|---:|---:|---:|\n", to);
    json_array_foreach(json_object_get(j, "runs"), i, run) {
        fputs("| ", to);
        put_words(to, word(run, "name"));
        fprintf(to, " | %s", show_loss(num(run, "best_val_loss"), n));
        fprintf(to, " | %s", report_show_count(num(run, "best_step"), n));
        fprintf(to, " | %s", report_show_count(num(run, "tokens"), n));
        fprintf(to, " | %s", report_show_seconds(num(run, "seconds"), n));
        fprintf(to, " | %s", report_show_bytes(num(run, "planned_bytes"), n));
        fprintf(to, " | %s |\n", report_show_bytes(num(run, "peak_bytes"), n));
    }
}

/* Of each data, where there are several. */
static void put_bests(FILE *to, const json_t *bests)
{
    const json_t *b;
    number_text n;
    size_t i;
    if (json_array_size(bests) > 1)
        json_array_foreach(bests, i, b) {
            fputs("\n- ", to);
            put_words(to, word(b, "data"));
            fputs(": ", to);
            put_words(to, word(b, "names"));
            fprintf(to, " %s the lowest %s, %s", num(b, "tied") > 1 ? "are tied with" : "has", strcmp(word(b, "by"), "loss") ? "validation loss" : "loss", show_loss(num(b, "loss"), n));
            fprintf(to, num(b, "runs") == 1 ? ", as its only run that finished with one\n" : ", of %.0f runs that finished with one\n", num(b, "runs"));
        }
}

static void put_notes(FILE *to, const json_t *j)
{
    const json_t *run;
    size_t i;
    char others[1024];
    runs_other_keys(j, others, sizeof others);
    if (*others) {
        fputs("\nConfigs differ also in ", to);
        report_put_markdown(to, others);
        fputs("; report.json has the values.\n", to);
    }
    put_bests(to, json_object_get(j, "bests"));
    json_array_foreach(json_object_get(j, "runs"), i, run) {
        if (!runs_note(run))
            continue;
        fputs("\n- ", to);
        put_words(to, word(run, "name"));
        fputs(": ", to);
        put_words(to, runs_note(run));
        fputc('\n', to);
    }
}

enum status report_compare_write_markdown(const json_t *compared, FILE *to, struct error *err)
{
    (void)err;
    fputs("# ", to);
    put_words(to, word(compared, "headline"));
    fputs("\n\n", to);
    put_table(to, compared);
    put_figures(to, compared);
    put_notes(to, compared);
    return OK;
}
