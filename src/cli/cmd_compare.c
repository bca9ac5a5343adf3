/* hone compare: runs on one page, with their curves over each other. */
#include <stdlib.h>

#include "cli/cli.h"
#include "report/report.h"
#include "runs/runs.h"

enum { POINTS_ALL = 24000, POINTS_RUN = 1000 };        /* of a page, and of a run in it */

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    const json_t *document = what;
    char *texts[] = {document_written(report_compare_write_html, document), document_written(report_compare_write_markdown, document),
                     json_lines(json_incref((json_t *)document))};
    static const char *const names[] = {"report.html", "report.md", "report.json"};
    enum status st = OK;
    for (int i = 0; i < 3; i++) {
        if (st == OK)
            st = report_folder_add(folder, names[i], texts[i], err);
        free(texts[i]);
    }
    return st;
}

static enum status read_runs(struct runs *r, const struct text_list *given, struct error *err)
{
    struct progress bar;
    enum status st = runs_open(r, given->item, given->n, err);
    progress_start(&bar, 0, r->n);
    for (int i = 0; i < r->n && st == OK; i++) {
        char text[128];
        snprintf(text, sizeof text, "reading %.80s", shown(r->run[i].name));
        progress_show(&bar, i, text);
        st = run_read_curves(&r->run[i], POINTS_ALL / r->n < POINTS_RUN ? POINTS_ALL / r->n : POINTS_RUN, err);
    }
    progress_clear(&bar);
    return st;
}

static enum status compare(const struct runs *r, const char *folder, bool json, struct error *err)
{
    struct run_keys keys;
    run_keys_init(&keys, r);
    json_t *document = runs_compare_json(r, &keys);
    run_keys_release(&keys);
    enum status st = document ? report_folder_publish(folder, REPORT_COMPARE, write_files, document, err) : error_no_memory(err, "the report", 1 << 20);
    if (st == OK && json)
        st = print_document(json_incref(document), 9, err);
    else if (st == OK) {
        printf("report: %s/report.html   (also report.md, report.json)\n\n", shown(folder));
        report_compare_print_terminal(document, stdout, stream_has_color(stdout));
    }
    json_decref(document);
    return st;
}

int cmd_compare(int argc, char **argv)
{
    struct text_list given = {0};
    const char *out = "runs/compare";
    bool json = false;
    const struct option_def options[] = {
        {"--out", "DIR", OPTION_TEXT, &out, "where the report goes (default runs/compare)"},
        {"--json", NULL, OPTION_FLAG, &json, "print the report as one JSON document"},
        {0},
    };
    const struct usage usage = {
        .command = "compare", .arguments = "RUN...", .options = options, .min_positional = 1, .max_positional = MAX_LIST,
        .summary = "Sets runs side by side: losses over steps, tokens and time, what each ended with, speed, memory, and the keys in which\n"
                   "their configs differ, on one page that opens offline. RUN is the folder of a run, also of one that goes on or has failed,\n"
                   "or a folder of runs.",
        .examples = "  hone compare runs/a runs/b\n  hone compare runs/quickstart-sweep --out reports/sweep\n",
    };
    switch (parse_options(&usage, argc, argv, &given)) {
    case PARSED_HELP: return OK;
    case PARSED_BAD: return BAD_INPUT;
    case PARSED_GO: break;
    }
    char folder[REPORT_FOLDER_MAX];
    struct runs r = {0};
    struct error err;
    enum status st = report_folder_name(folder, out, &err);
    if (st == OK)
        st = report_folder_check(folder, REPORT_COMPARE, &err);
    if (st == OK)
        st = read_runs(&r, &given, &err);
    if (st == OK)
        st = compare(&r, folder, json, &err);
    runs_release(&r);
    return st == OK ? OK : report_error(&err);
}
