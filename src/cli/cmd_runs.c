/* hone runs: the runs below a folder as a table. */
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"
#include "runs/runs.h"

static enum status show(const struct runs *r, const char *folder, bool json, struct error *err)
{
    struct run_keys keys;
    run_keys_init(&keys, r);
    json_t *document = runs_json(r, &keys, folder);
    run_keys_release(&keys);
    if (!document)
        return error_no_memory(err, "the table of runs", (size_t)r->n * 1024);
    if (json)
        return print_document(document, 9, err);
    if (r->n)
        report_runs_print_terminal(document, stdout, stream_has_color(stdout));
    else
        printf("no runs below '%s'\n", shown(folder));
    json_decref(document);
    return OK;
}

int cmd_runs(int argc, char **argv)
{
    struct text_list given = {0};
    struct picked sort = {.words = runs_columns_to_sort, .text = "name"};
    bool json = false;
    const struct option_def options[] = {
        {"--sort", "KEY", OPTION_OPEN, &sort, "the order, by a key of the config or by a column (default name)"},
        {"--json", NULL, OPTION_FLAG, &json, "print the table as one JSON document"},
        {0},
    };
    const struct usage usage = {
        .command = "runs", .arguments = "[DIR]", .options = options, .max_positional = 1,
        .summary = "Lists the runs below DIR (default runs): what became of each, how far it is, its losses and speed, and the keys of the config\n"
                   "in which they differ. States: running, finished, stopped, failed, nan (loss or gradient was not finite), crashed (it was killed).",
        .examples = "  hone runs\n  hone runs runs/quickstart-sweep --sort val_loss\n  hone runs --sort train.lr --json | jq '.runs[].val_loss'\n",
    };
    switch (parse_options(&usage, argc, argv, &given)) {
    case PARSED_HELP: return OK;
    case PARSED_BAD: return BAD_INPUT;
    case PARSED_GO: break;
    }
    const char *folder = given.n ? given.item[0] : "runs";
    struct runs r = {0};
    struct error err;
    enum status st = runs_check_sort(sort.text, &err);
    if (st == OK)
        st = runs_find(&r, folder, &err);
    for (int i = 0; i < r.n; i++)
        run_check_lines(&r.run[i]);
    if (st == OK)
        st = runs_sort(&r, sort.text, &err);
    if (st == OK)
        st = show(&r, folder, json, &err);
    runs_release(&r);
    return st == OK ? OK : report_error(&err);
}
