/* hone forget: folders of runs that are whole, cut off, damaged or missing, as JSON, Markdown, on a screen and as a page.
 * `test_forget_report --write DIR` instead writes report.html and report.json of samples into DIR/NAME, for
 * tests/cli/forget-report-chromium.sh. */
#include <math.h>

#include "forget_samples.h"
#include "report_check.h"
#include "written.h"

/* ---- folders ---- */

static struct forget *collected(void)
{
    struct forget *f = sample_folders(sample_root);
    struct error err;
    assert_ok(forget_collect(f, &err), err);
    return f;
}

static void folders_are_read(void **state)
{
    (void)state;
    struct forget *f = collected();
    assert_int_equal(f->n_warnings, 0);
    const struct forget_run *r = &f->configs[3].runs[1];
    assert_true(r->done && r->nodes == 13 && r->n_logs == 12 && r->logs[11].step == 600 && r->logs[4].domain == 1);
    assert_near(r->logs[0].selected[0], 34, 0, "selected");
    assert_near(forget_numbers(r).new_loss, 0.27, 1e-9, "new_loss");
    assert_near(forget_numbers(r).forgotten, 0.82 - 0.02 + 0.02 * (5 % 3), 1e-9, "forgotten");
    assert_int_equal(f->configs[0].runs[0].n_logs, 0);
    forget_free(f);
}

/* Lines without a domain are of the one that their step is in; a norm that was left out is null. */
static void lines_may_lack_a_domain_and_norms(void **state)
{
    (void)state;
    struct forget_run r = {.n_domains = 3, .steps_per_domain = 200};
    struct arena arena = {0};
    char warning[FORGET_WORDS];
    struct error err;
    snprintf(r.folder, sizeof r.folder, "%s", sample_root);
    put_file(sample_root, "nodes.jsonl",
             "{\"step\": 200, \"steps\": 50, \"norm_mean\": [null, 2], \"norm_max\": [0, 3], \"selected\": [0, 50]}\n"
             "{\"step\": 201, \"steps\": 1, \"norm_mean\": [1, 2], \"norm_max\": [1, 3], \"selected\": [0, 1]}\n"
             "{\"step\": 700, \"steps\": 50, \"norm_mean\": [1, 2], \"norm_max\": [1, 3], \"selected\": [0, 50]}\n"
             "{\"step\": 750, \"steps\": 50, \"norm_mean\": [1, 2], \"norm_max\": [1, 3], \"selected\": [0, null]}\n");
    assert_ok(forget_read_nodes(&r, &arena, warning, &err), err);
    assert_int_equal(r.n_logs, 3);
    assert_true(r.logs[0].domain == 0 && r.logs[1].domain == 1 && r.logs[2].domain == -1);
    assert_true(isnan(r.logs[0].norm_mean[0]) && r.logs[0].norm_mean[1] == 2);
    assert_has(warning, "damaged in line 4");
    arena_release(&arena);
}

static void the_document_has_means_and_nodes(void **state)
{
    (void)state;
    struct forget *f = collected();
    json_t *j = forget_json(f);
    assert_non_null(j);
    assert_string_equal(words(j, "kind"), "forget");
    assert_number(j, "runs_done", 15);
    assert_number(j, "configs.3.new_loss.mean", 0.27);
    assert_number(j, "configs.3.new_loss.sd", 0.008);
    assert_number(j, "configs.3.forgotten_nats.mean", 0.82);
    assert_number(j, "configs.3.backward_transfer.mean", -0.82);
    assert_number(j, "configs.3.matrix.2.1.above_entropy", 0.27);
    assert_number(j, "configs.3.matrix.0.0.perplexity", exp(4));
    assert_number(j, "configs.3.chance", 5.0 / 13);
    assert_number(j, "configs.3.node_use.share.0", (34.0 + 10 + 10) / 150);
    assert_number(j, "configs.3.node_use.by_domain.1.share.8", 34.0 / 50);
    assert_number(j, "configs.3.node_use.by_domain.1.share.0", 10.0 / 50);
    assert_number(j, "configs.3.node_use.norm.3", 0.4);
    assert_number(j, "configs.3.node_use.norm_max.3", 0.8);
    assert_number(j, "configs.3.node_use.parents.12", 3);
    assert_int_equal(json_array_size(at(j, "configs.3.node_use.time")), 12);
    assert_number(j, "configs.3.node_use.time.4.share.8", 34.0 / 50);
    assert_string_equal(words(j, "configs.3.node_use.time.4.domain"), "code");
    assert_number(j, "configs.2.node_use.share.0", 1);
    assert_true(json_is_null(at(j, "configs.0.node_use")) && json_is_null(at(j, "configs.0.chance")));
    assert_int_equal(json_array_size(at(j, "comparisons")), 4);
    assert_string_equal(words(j, "verdicts.0.beats_random"), "yes");
    json_decref(j);
    forget_free(f);
}

/* The first `bytes` of a file. */
static void cut_file(const char *folder, const char *name, off_t bytes)
{
    char path[CONFIG_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(truncate(path, bytes), 0);
}

static void damaged_folders_are_left_out_by_name(void **state)
{
    (void)state;
    struct forget *f = sample_folders(sample_root);
    struct error err;
    char path[CONFIG_PATH_MAX + 64];
    cut_file(f->configs[0].runs[0].folder, "forgetting.json", 100);
    snprintf(path, sizeof path, "%s/forgetting.json", f->configs[1].runs[1].folder);
    assert_int_equal(unlink(path), 0);
    put_file(f->configs[2].runs[0].folder, "forgetting.json", "{\"domains\": [\"prose\", \"code\"], \"entropy\": [1, null], \"loss\": [[4, 4], [1, 2]]}");
    put_file(f->configs[2].runs[1].folder, "forgetting.json", "{\"domains\": [\"prose\"], \"entropy\": [1], \"loss\": [[4], [1]]}");
    put_file(f->configs[2].runs[2].folder, "forgetting.json", "{\"domains\": [\"prose\", \"code\"], \"loss\": [[4, 4], [1, \"x\"]]}");
    cut_file(f->configs[3].runs[0].folder, "nodes.jsonl", 1000);
    put_nodes_file(f->configs[3].runs[1].folder, 13, 5, "{\"step\": 600, \"steps\": 50}\n");
    snprintf(path, sizeof path, "%s/nodes.jsonl", f->configs[3].runs[2].folder);
    assert_int_equal(unlink(path), 0);
    put_nodes_file(f->configs[4].runs[0].folder, 12, 5, "");
    assert_ok(forget_collect(f, &err), err);

    assert_int_equal(f->n_warnings, 9);
    assert_has(f->warnings[0], "forget-baseline4 seed 1 is left out: ");
    assert_has(f->warnings[0], "forget-baseline4-seed1/forgetting.json' is damaged: it is no JSON object");
    assert_has(f->warnings[1], "forget-baseline13 seed 2 is left out: ");
    assert_has(f->warnings[1], "No such file");
    assert_has(f->warnings[2], "forget-tree13-seed1' is left out: 1 of its 2 stages are done");
    assert_has(f->warnings[3], "something that is no number");
    assert_has(f->warnings[4], "forget-tree5-seed1/nodes.jsonl' is cut off or damaged in line");
    assert_has(f->warnings[5], "forget-tree5-seed2/nodes.jsonl' is cut off or damaged in line 13");
    assert_has(f->warnings[6], "nothing is known of the nodes");
    assert_has(f->warnings[7], "is of 12 nodes, and forget-random5 has 13");
    assert_has(f->warnings[8], "forget-tree13-seed2' is left out: its domains are not those of");
    assert_true(f->configs[3].runs[0].done && f->configs[3].runs[0].n_logs >= 1 && f->configs[3].runs[1].n_logs == 12);
    assert_false(f->configs[2].runs[0].done || f->configs[2].runs[1].done || f->configs[2].runs[2].done);

    json_t *j = forget_json(f);             /* and what is left is judged */
    assert_non_null(j);
    assert_number(j, "runs_done", 10);
    assert_true(json_is_null(at(j, "configs.2.matrix")));
    assert_string_equal(words(j, "verdicts.0.beats_all"), "cannot be said");
    json_decref(j);
    forget_free(f);
}

/* The first run of all is the one with other domains. */
static void most_runs_say_which_domains_are_compared(void **state)
{
    (void)state;
    struct forget *f = sample_folders(sample_root);
    struct error err;
    put_file(f->configs[0].runs[0].folder, "forgetting.json", "{\"domains\": [\"prose\"], \"entropy\": [1], \"loss\": [[4], [1]]}");
    assert_ok(forget_collect(f, &err), err);
    assert_int_equal(f->n_warnings, 1);
    assert_has(f->warnings[0], "forget-baseline4-seed1' is left out: its domains are not those of");
    assert_true(!f->configs[0].runs[0].done && f->configs[0].runs[1].done && f->configs[4].runs[2].done);
    forget_free(f);
}

/* ---- Markdown, terminal, page ---- */

static enum status write_terminal(const json_t *j, FILE *to, struct error *err)
{
    (void)err;
    report_forget_print_terminal(j, to, false);
    return OK;
}

static void markdown_and_terminal_say_the_same(void **state)
{
    (void)state;
    struct forget *f = collected();
    json_t *j = forget_json(f);
    char *md = text_of(report_forget_write_markdown, j), *screen = text_of(write_terminal, j);
    assert_has(md, "| forget-tree5 | 5 of 13 by gradient | 3 | 0.2700 ± 0.0080 |");
    assert_has(md, "| prose | 0.7000 ± 0.0000 (+0.2000) ppl 2.01 |");
    assert_has(md, "Chance is 38.5 %: 5 of 13.");
    assert_has(md, "| forget-tree5 | forget-random5 |");
    assert_has(screen, "forget-tree5         5 of 13 by gradient   0.270 ± 0.008   0.820 ± 0.020");
    assert_has(screen, "by gradient against as many at random: ");
    assert_has(screen, words(j, "headline"));
    free(md);
    free(screen);
    json_decref(j);
    forget_free(f);
}

static void nothing_done_makes_a_page_too(void **state)
{
    (void)state;
    struct forget *f = forget_new(3);
    add_config(f, "<script>alert(1)</script>|*", CHOICE_GRADIENT, 5);
    f->interrupted = true;
    json_t *j = forget_json(f);
    assert_non_null(j);
    assert_string_equal(words(j, "headline"), "Interrupted: 0 of 3 runs are done");
    char *page = text_of(report_forget_write_html, j), *md = text_of(report_forget_write_markdown, j), *screen = text_of(write_terminal, j);
    assert_has(page, "· hone forget</title>");
    assert_has_not(page, "<script>alert");
    assert_has_not(md, "<script>");
    assert_has_not(page, "{{");
    free(page);
    free(md);
    free(screen);
    json_decref(j);
    forget_free(f);
}

/* Whatever a document lacks is a dash. */
static void a_document_with_nothing_in_it_is_no_crash(void **state)
{
    (void)state;
    json_t *j = json_pack("{s:[{}], s:[{}], s:[{}], s:[{}], s:[{}]}", "configs", "verdicts", "comparisons", "domains", "warnings");
    char *md = text_of(report_forget_write_markdown, j), *screen = text_of(write_terminal, j);
    assert_has(md, "# Learned against forgotten");
    free(md);
    free(screen);
    json_decref(j);
}

/* ---- for the browser ---- */

static void write_page(const char *folder, const char *name, json_t *j)
{
    char path[CONFIG_PATH_MAX];
    struct error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(fs_make_dirs(path, &err), err);
    char *page = text_of(report_forget_write_html, j), *json = json_dumps(j, JSON_INDENT(2));
    put_file(path, "report.html", page);
    put_file(path, "report.json", json);
    free(page);
    free(json);
    json_decref(j);
}

static int write_pages(const char *folder)
{
    if (make_sample_root(NULL))
        return 1;
    struct forget *f = collected();
    write_page(folder, "sample", forget_json(f));
    forget_free(f);
    f = forget_new(3);
    write_page(folder, "empty", forget_json(f));
    add_config(f, "<b>\"&|'", CHOICE_GRADIENT, 5);
    set_runs(add_config(f, "<img src=x onerror=alert(1)>", CHOICE_NONE, 4), 0.3, 0.5, 0.01);
    strcpy(f->configs[1].runs[0].domains[0], "</script><script>alert(2)</script>");
    f->configs[1].runs[0].entropy[1] = NAN;
    write_page(folder, "hostile", forget_json(f));
    forget_free(f);
    return remove_sample_root(NULL);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--write"))
        return write_pages(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_are_read, make_sample_root, remove_sample_root),
        cmocka_unit_test_setup_teardown(lines_may_lack_a_domain_and_norms, make_sample_root, remove_sample_root),
        cmocka_unit_test_setup_teardown(the_document_has_means_and_nodes, make_sample_root, remove_sample_root),
        cmocka_unit_test_setup_teardown(damaged_folders_are_left_out_by_name, make_sample_root, remove_sample_root),
        cmocka_unit_test_setup_teardown(most_runs_say_which_domains_are_compared, make_sample_root, remove_sample_root),
        cmocka_unit_test_setup_teardown(markdown_and_terminal_say_the_same, make_sample_root, remove_sample_root),
        cmocka_unit_test(nothing_done_makes_a_page_too),
        cmocka_unit_test(a_document_with_nothing_in_it_is_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
