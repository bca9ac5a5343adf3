/* report.md of hone forget: what its page shows, as tables and bars of text. All of it comes from report.json. */
#include "report/forget_text_int.h"

enum { VERDICT_COLUMNS = 800 };

static void put_name(FILE *to, const json_t *j, const char *key) { report_put_markdown_cut(to, *word(j, key) ? word(j, key) : "–", NAME_COLUMNS); }

static void put_domains(FILE *to, const json_t *j)
{
    const json_t *d;
    size_t i;
    fputs("| domains | ", to);
    json_array_foreach(json_object_get(j, "domains"), i, d) {
        fputs(i ? " → " : "", to);
        put_name(to, d, "name");
        if (isfinite(num(d, "entropy")))
            fprintf(to, " (best possible %.4f)", num(d, "entropy"));
    }
    fputs(" |\n", to);
}

static void put_top(FILE *to, const json_t *j)
{
    const json_t *w;
    size_t i;
    fputs("# Learned against forgotten: ", to);
    put_name(to, j, "name");
    fputs("\n\n**", to);
    report_put_markdown_cut(to, word(j, "headline"), SENTENCE_COLUMNS);
    fputs(".**\n\n| | |\n|---|---|\n", to);
    put_domains(to, j);
    if (isfinite(num(j, "steps_per_domain")))
        fprintf(to, "| steps per domain | %.0f |\n", num(j, "steps_per_domain"));
    else
        fputs("| steps per domain | not the same in all |\n", to);
    fprintf(to, "| runs | %.0f of %.0f done, %.0f seeds each |\n", num(j, "runs_done"), num(j, "runs_wanted"), num(j, "seeds"));
    json_array_foreach(json_object_get(j, "warnings"), i, w) {
        fputs(i ? "- " : "\nWarnings:\n\n- ", to);
        put_words(to, json_string_value(w) ? json_string_value(w) : "");
        fputc('\n', to);
    }
}

static void put_answer(FILE *to, const json_t *v, const char *than, const char *answer, const char *words)
{
    fputs("- Does ", to);
    put_name(to, v, "config");
    fprintf(to, " beat %s? **%s.** ", than, word(v, answer));
    report_put_markdown_cut(to, word(v, words), VERDICT_COLUMNS);
    fputs(".\n", to);
}

static void put_verdicts(FILE *to, const json_t *j)
{
    const json_t *v;
    size_t i;
    fputs("\n## Does choosing by gradient help?\n\n", to);
    if (!length(j, "verdicts"))
        fputs("No config chooses nodes by gradient, so there is nothing to judge.\n", to);
    json_array_foreach(json_object_get(j, "verdicts"), i, v) {
        put_answer(to, v, "as many nodes chosen at random", "beats_random", "random_words");
        put_answer(to, v, "all nodes", "beats_all", "all_words");
    }
}

static void put_config(FILE *to, const json_t *c)
{
    number_text a, b, d, e, f, g;
    char choice[64];
    fputs("| ", to);
    put_name(to, c, "name");
    fprintf(to, " | %s | %.0f | %s | %s | %s | %s | %s | %s |\n", show_choice(c, choice), num(json_object_get(c, "new_loss"), "n"),
            show_spread(c, "new_loss", 4, false, a), show_spread(c, "learned", 3, false, b), show_spread(c, "forgotten_nats", 4, false, d),
            show_percents(c, "forgotten_percent", e), show_spread(c, "backward_transfer", 4, true, f),
            show_spread(c, "end_loss", 4, false, g));
}

static void put_configs(FILE *to, const json_t *j)
{
    const json_t *c;
    size_t i;
    fprintf(to, "\n## Configs\n\nMean ± standard deviation over seeds, in nats. New domains and the end are %s. New domains are those after the first, each\n"
            "right after its own stage; forgotten is what the domains before the last lost from their own stage to the end.\n\n"
            "| config | what learns | seeds | new domains | learned | forgotten | %% | backward transfer | all at the end |\n"
            "|---|---|---:|---:|---:|---:|---:|---:|---:|\n", above_words(j));
    json_array_foreach(json_object_get(j, "configs"), i, c)
        put_config(to, c);
}

/* ---- losses ---- */

static void put_cell(FILE *to, const json_t *cell)
{
    const double loss = num(cell, "loss"), sd = num(cell, "sd"), above = num(cell, "above_entropy");
    if (!isfinite(loss)) {
        fputs(" – |", to);
        return;
    }
    fprintf(to, " %.4f", loss);
    if (isfinite(sd))
        fprintf(to, " ± %.4f", sd);
    if (isfinite(above))
        fprintf(to, " (%+.4f)", above);
    fprintf(to, " ppl %.3g |", num(cell, "perplexity"));
}

static void put_matrix(FILE *to, const json_t *j, const json_t *c)
{
    const json_t *row, *cell, *d;
    size_t i, k;
    fputs("\n### ", to);
    put_name(to, c, "name");
    fputs("\n\n| after |", to);
    json_array_foreach(json_object_get(j, "domains"), i, d) {
        fputc(' ', to);
        put_name(to, d, "name");
        fputs(" |", to);
    }
    fputs("\n|---|", to);
    for (i = 0; i < length(j, "domains"); i++)
        fputs("---:|", to);
    fputc('\n', to);
    json_array_foreach(json_object_get(c, "matrix"), i, row) {
        fputs("| ", to);
        report_put_markdown_cut(to, stage_name(j, i), NAME_COLUMNS);
        fputs(" |", to);
        json_array_foreach(row, k, cell)
            put_cell(to, cell);
        fputc('\n', to);
    }
}

static void put_matrices(FILE *to, const json_t *j)
{
    const json_t *c;
    size_t i;
    fputs("\n## Loss by stage and domain\n\nValidation loss in nats per token, in brackets its distance to the best possible one, and the perplexity.\n", to);
    json_array_foreach(json_object_get(j, "configs"), i, c)
        if (length(c, "matrix"))
            put_matrix(to, j, c);
}

static void put_forgetting(FILE *to, const json_t *j)
{
    const json_t *c, *f;
    number_text a, b;
    size_t i, k;
    if (length(j, "domains") < 2)
        return;
    fputs("\n## Forgotten, by domain\n\n| config | domain | nats | % |\n|---|---|---:|---:|\n", to);
    json_array_foreach(json_object_get(j, "configs"), i, c)
        json_array_foreach(json_object_get(c, "forgetting"), k, f) {
            fputs("| ", to);
            put_name(to, c, "name");
            fputs(" | ", to);
            put_name(to, f, "domain");
            fprintf(to, " | %s | %s |\n", show_spread(f, "nats", 4, false, a), show_percents(f, "percent", b));
        }
}

/* ---- nodes ---- */

static void put_share(FILE *to, const json_t *list, size_t node)
{
    const json_t *x = json_array_get(list, node);
    if (json_is_number(x))
        fprintf(to, " %.1f %% |", 100 * json_number_value(x));
    else
        fputs(" – |", to);
}

static void put_nodes(FILE *to, const json_t *c)
{
    const json_t *use = json_object_get(c, "node_use"), *domains = json_object_get(use, "by_domain"), *d;
    number_text n;
    size_t k;
    fputs("\n### ", to);
    put_name(to, c, "name");
    fprintf(to, "\n\nChance is %.1f %%: %.0f of %.0f.\n\n| node | parent | gradient norm | updated | |", 100 * num(c, "chance"), num(c, "k"), num(c, "nodes"));
    json_array_foreach(domains, k, d) {
        fputs(" in ", to);
        put_name(to, d, "domain");
        fputs(" |", to);
    }
    fputs("\n|---:|---:|---:|---:|---|", to);
    for (k = 0; k < json_array_size(domains); k++)
        fputs("---:|", to);
    for (size_t i = 0; i < length(use, "share"); i++) {
        const json_t *parent = item(use, "parents", i);
        fprintf(to, "\n| %zu | ", i);
        if (json_is_integer(parent))
            fprintf(to, "%lld", (long long)json_integer_value(parent));
        fprintf(to, " | %s |", report_show_number(json_number_value(item(use, "norm", i)), n));
        put_share(to, json_object_get(use, "share"), i);
        fputc(' ', to);
        report_markdown_bar(to, json_number_value(item(use, "share", i)));
        fputs(" |", to);
        json_array_foreach(domains, k, d)
            put_share(to, json_object_get(d, "share"), i);
    }
    fputc('\n', to);
}

static void put_all_nodes(FILE *to, const json_t *j)
{
    const json_t *c;
    bool any = false;
    size_t i;
    json_array_foreach(json_object_get(j, "configs"), i, c)
        if (length(json_object_get(c, "node_use"), "share")) {
            if (!any)
                fputs("\n## Nodes\n\nThe share of steps in which each was updated, in all and by domain, of all seeds together.\n", to);
            any = true;
            put_nodes(to, c);
        }
}

static void put_interval(FILE *to, const json_t *d)
{
    if (isfinite(num(d, "low")))
        fprintf(to, " %+.4f (%+.4f to %+.4f) |", num(d, "mean"), num(d, "low"), num(d, "high"));
    else
        fputs(" – |", to);
}

static void put_comparisons(FILE *to, const json_t *j)
{
    const json_t *c;
    size_t i;
    if (!length(j, "comparisons"))
        return;
    fputs("\n## Comparisons\n\nDifferences within seeds, with the interval that holds 95 %: below zero the first learned more, or forgot less.\n\n"
          "| config | against | loss on new domains | forgotten | outcome |\n|---|---|---:|---:|---|\n", to);
    json_array_foreach(json_object_get(j, "comparisons"), i, c) {
        fputs("| ", to);
        put_name(to, c, "a");
        fputs(" | ", to);
        put_name(to, c, "b");
        fputs(" |", to);
        put_interval(to, json_object_get(c, "new_loss"));
        put_interval(to, json_object_get(c, "forgotten_nats"));
        fprintf(to, " %s |\n", outcome_words(word(c, "outcome")));
    }
}

enum status report_forget_write_markdown(const json_t *forget, FILE *to, struct error *err)
{
    (void)err;
    put_top(to, forget);
    put_verdicts(to, forget);
    put_configs(to, forget);
    put_forgetting(to, forget);
    put_comparisons(to, forget);
    put_matrices(to, forget);
    put_all_nodes(to, forget);
    return OK;
}
