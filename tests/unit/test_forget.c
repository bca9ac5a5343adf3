/* hone forget: numbers of a run, means over seeds, the verdict on made-up runs (it beats, ties, is worse, cannot be compared), and
 * folders of runs that are whole, cut off, damaged or missing. */
#include <math.h>

#include "forget_samples.h"
#include "report_check.h"

static char root[] = "/tmp/hone-test-forget-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return fs_remove_tree(root, NULL) == OK ? 0 : -1;
}

/* ---- numbers ---- */

static void a_run_has_the_numbers_of_its_matrix(void **state)
{
    (void)state;
    struct forget_run r = {.done = true, .n_domains = 3, .n_stages = 3, .entropy = {0.5, 0.25, 1},
                           .loss = {{4, 4.2, 3.8}, {1, 5, 5}, {1.5, 0.75, 4}, {2, 1.25, 1.5}}};
    const struct forget_numbers n = forget_numbers(&r);
    assert_near(n.new_loss, ((0.75 - 0.25) + (1.5 - 1)) / 2, 1e-12, "new_loss");
    assert_near(n.learned, ((4.2 - 0.75) + (3.8 - 1.5)) / 2, 1e-12, "learned");
    assert_near(n.forgotten, ((2.0 - 1) + (1.25 - 0.75)) / 2, 1e-12, "forgotten");
    assert_near(n.percent, 100 * ((exp(1) - 1) + (exp(0.5) - 1)) / 2, 1e-9, "percent");
    assert_near(n.end_loss, (1.5 + 1 + 0.5) / 3, 1e-12, "end_loss");
    assert_true(isnan(forget_nats(&r, 2)));

    r.entropy[1] = NAN;                     /* then all are losses as they are */
    assert_near(forget_numbers(&r).new_loss, (0.75 + 1.5) / 2, 1e-12, "new_loss without an entropy");
    r.done = false;
    assert_true(isnan(forget_numbers(&r).forgotten));
    struct forget_run one = {.done = true, .n_domains = 1, .n_stages = 1, .entropy = {0.5}, .loss = {{4}, {1}}};
    assert_true(isnan(forget_numbers(&one).forgotten) && isnan(forget_numbers(&one).new_loss));
    assert_near(forget_numbers(&one).end_loss, 0.5, 1e-12, "end_loss of one domain");
}

static void a_spread_is_mean_and_sample_deviation(void **state)
{
    (void)state;
    const double values[] = {1, NAN, 2, 4};
    const struct forget_spread s = forget_spread(values, 4), one = forget_spread(values, 2), none = forget_spread(values + 1, 1);
    assert_int_equal(s.n, 3);
    assert_near(s.mean, 7.0 / 3, 1e-12, "mean");
    assert_near(s.sd, sqrt((16.0 / 9 + 1.0 / 9 + 25.0 / 9) / 2), 1e-12, "sd");
    assert_true(one.n == 1 && one.mean == 1 && isnan(one.sd) && none.n == 0 && isnan(none.mean));
}

static void parents_follow_the_levels(void **state)
{
    (void)state;
    const struct forget_config c = {.nodes = 13, .levels = 2, .tree = {3, 3}}, d = {.nodes = 11, .levels = 2, .tree = {2, 4}};
    const int wanted[] = {-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, other[] = {-1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
    for (int i = 0; i < 13; i++)
        assert_int_equal(forget_parent(&c, i), wanted[i]);
    for (int i = 0; i < 11; i++)
        assert_int_equal(forget_parent(&d, i), other[i]);
    assert_int_equal(forget_parent(&c, 13), -1);
}

/* ---- the verdict ---- */

/* A config by gradient against one at random and one with all nodes, at these places. */
static struct forget_verdict judged(double above, double forgotten, double random_above, double random_forgotten, double all_above,
                                    double all_forgotten, double scatter, int64_t seeds)
{
    struct forget *f = forget_new(seeds);
    struct forget_verdict v;
    set_runs(add_config(f, "g", CHOICE_GRADIENT, 5), above, forgotten, scatter);
    set_runs(add_config(f, "r", CHOICE_RANDOM, 5), random_above, random_forgotten, -scatter);
    set_runs(add_config(f, "a", CHOICE_ALL, 13), all_above, all_forgotten, 0.5 * scatter);
    assert_int_equal(forget_judge(f, &v, 1), 1);
    forget_free(f);
    return v;
}

static void it_beats_who_forgot_more_and_learned_no_more(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.300, 0.5, 0.301, 0.9, 0.299, 1.0, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_BEATS);
    assert_int_equal(v.beats_random, ANSWER_YES);
    assert_int_equal(v.beats_all, ANSWER_YES);
    assert_near(v.by_random.forgotten.mean, -0.4, 1e-9, "mean");
    assert_has(v.random_words, "g against r: ");
    assert_has(v.random_words, "it forgot less by 0.400 nats");
    assert_has(v.random_words, "within the spread, and it forgot");
}

static void it_beats_who_learned_less_and_forgot_no_less(void **state)
{
    (void)state;
    assert_int_equal(judged(0.2, 0.9, 0.5, 0.9, 0.2, 0.9, 0.004, 3).beats_random, ANSWER_YES);
}

static void within_the_spread_is_no(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.30, 0.89, 0.31, 0.90, 0.30, 0.90, 0.05, 3);
    assert_int_equal(v.by_random.outcome, FORGET_TIES);
    assert_int_equal(v.beats_random, ANSWER_NOT);
    assert_int_equal(v.beats_all, ANSWER_NOT);
}

static void who_forgot_more_at_equal_learning_is_worse(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.30, 1.4, 0.30, 0.9, 0.30, 0.9, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_WORSE);
    assert_int_equal(v.beats_random, ANSWER_NOT);
    assert_int_equal(judged(0.50, 0.9, 0.30, 0.9, 0.30, 0.9, 0.004, 3).by_all.outcome, FORGET_WORSE);       /* learned less */
}

/* It learned more than random and forgot more, less than all and forgot less: a line between the two answers. */
static void between_the_two_a_line_answers(void **state)
{
    (void)state;
    struct forget_verdict v = judged(0.40, 0.6, 0.50, 0.5, 0.30, 1.0, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_NO_OVERLAP);
    assert_int_equal(v.by_all.outcome, FORGET_NO_OVERLAP);
    assert_true(v.has_line);
    assert_near(v.line_part, 0.5, 1e-9, "part");
    assert_near(v.line.mean, 0.6 - 0.75, 1e-9, "below the line");
    assert_int_equal(v.beats_random, ANSWER_YES);
    assert_int_equal(v.beats_all, ANSWER_YES);
    assert_has(v.random_words, "on the line from r to a");

    v = judged(0.40, 0.75, 0.50, 0.5, 0.30, 1.0, 0.004, 3);          /* on it */
    assert_int_equal(v.line_outcome, FORGET_TIES);
    assert_int_equal(v.beats_random, ANSWER_NOT);
    v = judged(0.40, 0.95, 0.50, 0.5, 0.30, 1.0, 0.004, 3);          /* above it */
    assert_int_equal(v.line_outcome, FORGET_WORSE);
    assert_int_equal(v.beats_all, ANSWER_NOT);
}

/* It learned less than both and forgot less: nothing learns as little, so nothing can be said. */
static void outside_of_both_it_cannot_be_said(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.80, 0.1, 0.50, 0.5, 0.30, 1.0, 0.004, 3);
    assert_int_equal(v.by_random.outcome, FORGET_NO_OVERLAP);
    assert_false(v.has_line);
    assert_int_equal(v.beats_random, ANSWER_UNSAID);
    assert_int_equal(v.beats_all, ANSWER_UNSAID);
    assert_has(v.random_words, "no mixture of r and a learns as much as g");
}

static void one_seed_says_nothing(void **state)
{
    (void)state;
    const struct forget_verdict v = judged(0.30, 0.1, 0.50, 0.5, 0.30, 1.0, 0.0, 1);
    assert_int_equal(v.by_random.outcome, FORGET_TOO_FEW);
    assert_int_equal(v.beats_random, ANSWER_UNSAID);
    assert_has(v.all_words, "1 seed in common");
}

/* Pairs of seeds count: each seed by itself is far from the next, and the difference is the same in all. */
static void differences_are_within_seeds(void **state)
{
    (void)state;
    struct forget *f = forget_new(3);
    set_runs(add_config(f, "g", CHOICE_GRADIENT, 5), 0.30, 0.50, 0.2);
    set_runs(add_config(f, "r", CHOICE_RANDOM, 5), 0.30, 0.60, 0.2);
    assert_int_equal(forget_compare(f, 0, 1).outcome, FORGET_BEATS);
    f->configs[1].runs[0].done = f->configs[0].runs[2].done = false;        /* one seed is left that both have */
    assert_int_equal(forget_compare(f, 0, 1).outcome, FORGET_TOO_FEW);
    forget_free(f);
}

static void rivals_are_of_the_same_tree(void **state)
{
    (void)state;
    struct forget *f = forget_new(3);
    struct forget_verdict v;
    char words[FORGET_WORDS];
    set_runs(add_config(f, "g", CHOICE_GRADIENT, 5), 0.30, 0.50, 0.01);
    set_runs(add_config(f, "r", CHOICE_RANDOM, 4), 0.30, 0.60, 0.01);       /* another number */
    set_runs(add_config(f, "a", CHOICE_ALL, 13), 0.30, 0.60, 0.01);
    f->configs[2].tree[1] = 2;                                              /* another tree */
    assert_int_equal(forget_judge(f, &v, 1), 1);
    assert_true(v.random == -1 && v.all == -1 && v.beats_random == ANSWER_UNSAID && v.beats_all == ANSWER_UNSAID);
    assert_has(v.random_words, "there is no config that chooses as many nodes at random");
    forget_headline(f, words);
    assert_string_equal(words, "At equal learning, choosing nodes by gradient cannot be compared with choosing as many at random or choosing all");
    f->configs[1].k = 5;
    f->configs[2].tree[1] = 3;
    forget_headline(f, words);
    assert_string_equal(words, "At equal learning, choosing nodes by gradient beats choosing as many at random, and choosing all");
    f->n_configs = 0;
    forget_headline(f, words);
    assert_has(words, "none of them chooses nodes by gradient");
    forget_free(f);
}

/* ---- folders ---- */

static struct forget *collected(void)
{
    struct forget *f = sample_folders(root);
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
    snprintf(r.folder, sizeof r.folder, "%s", root);
    put_file(root, "nodes.jsonl",
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
    struct forget *f = sample_folders(root);
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
    assert_has(f->warnings[3], "its domains are not those of");
    assert_has(f->warnings[4], "something that is no number");
    assert_has(f->warnings[5], "forget-tree5-seed1/nodes.jsonl' is cut off or damaged in line");
    assert_has(f->warnings[6], "forget-tree5-seed2/nodes.jsonl' is cut off or damaged in line 13");
    assert_has(f->warnings[7], "nothing is known of the nodes");
    assert_has(f->warnings[8], "is of 12 nodes, and forget-random5 has 13");
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

/* ---- runs, by a stand-in for training ---- */

static char made[512];                      /* the names of the folders in the order in which they were made */
static volatile sig_atomic_t stop;
static int stop_after;                      /* runs; 0: never */

static enum status pretend(const struct config *c, int64_t seed, const char *out, const volatile sig_atomic_t *stopped,
                           void (*progress)(void *context, int64_t step, int64_t total), void *context, struct train_result *result,
                           struct error *err)
{
    char text[192], path[CONFIG_PATH_MAX + 32];
    snprintf(text, sizeof text, "%s%s%lld", *made ? " " : "", c->name, (long long)seed);
    strcat(made, text);
    progress(context, 3, 6);
    if (stop_after && --stop_after == 0)
        stop = 1;
    result->interrupted = *stopped;
    snprintf(path, sizeof path, "%s/checkpoints", out);
    if (fs_make_dirs(path, err) != OK)
        return err->status;
    struct config *seeded = malloc(sizeof *seeded);
    assert_non_null(seeded);
    *seeded = *c;
    seeded->train.seed = seed;
    char *yaml = config_text(seeded);
    put_file(out, "config.yaml", yaml);
    free(yaml);
    free(seeded);
    if (!result->interrupted)
        put_losses(out, 0.1, 0.2);
    return OK;
}

static void remember_part(void *context, const struct forget_progress *p)
{
    double *last = context;
    assert_true(p->part >= *last && p->part <= 1 && p->runs == 4 && p->run >= 1 && p->run <= 4);
    *last = p->part;
}

static void load_two(struct config c[2])
{
    static const char *const texts[] = {"model: {arch: postln, layers: 4, dim: 16}\ndata: {domains: [prose, code, formulas]}\ntrain: {steps: 200}\n",
                                        "model: {arch: k1, tree: [3, 3], dim: 16}\nk1: {k: 13}\ndata: {domains: [prose, code, formulas]}\ntrain: {steps: 200}\n"};
    struct error err;
    for (int i = 0; i < 2; i++) {
        assert_ok(config_parse(&c[i], i ? "t.yaml" : "p.yaml", texts[i], strlen(texts[i]), NULL, 0, &err), err);
        strcpy(c[i].name, i ? "t" : "p");
    }
}

static struct forget *trained(const struct config c[2], double *part)
{
    struct forget *f = forget_new(0);
    struct error err;
    assert_ok(forget_plan(f, c, 2, root, 2, &err), err);
    *made = '\0';
    stop = 0;
    *part = 0;
    assert_ok(forget_train(f, c, &(struct forget_options){.stop = &stop, .on_progress = remember_part, .context = part, .train = pretend}, &err), err);
    return f;
}

static void runs_are_made_once_seed_by_seed(void **state)
{
    (void)state;
    struct config *c = calloc(2, sizeof *c);
    double part;
    assert_non_null(c);
    load_two(c);
    stop_after = 3;                         /* in the third run */
    struct forget *f = trained(c, &part);
    assert_string_equal(made, "p1 t1 p2");
    assert_true(f->interrupted);
    assert_int_equal(f->configs[1].choice, CHOICE_ALL);
    assert_true(f->configs[1].nodes == 13 && f->configs[1].levels == 2 && f->configs[0].choice == CHOICE_NONE);
    forget_free(f);

    f = trained(c, &part);                  /* what was begun goes on, what is done is not made again */
    assert_string_equal(made, "p2 t2");
    assert_false(f->interrupted);
    assert_near(part, (5 * 600 + 14 * 3.0) / (19 * 600), 1e-9, "weighed by blocks");
    forget_free(f);

    f = trained(c, &part);
    assert_string_equal(made, "");
    assert_true(!f->interrupted && f->configs[1].runs[1].done);
    forget_free(f);

    struct error err;
    f = forget_new(0);
    c[1].train.lr = 0.5;                    /* another config: refused before anything is trained */
    assert_ok(forget_plan(f, c, 2, root, 2, &err), err);
    assert_int_equal(forget_train(f, c, &(struct forget_options){.train = pretend}, &err), BAD_INPUT);
    assert_says(&err, "t-seed1", "train.lr", "0.5", NULL);
    assert_string_equal(made, "");
    forget_free(f);
    free(c);
}

/* ---- Markdown, terminal, page ---- */

typedef enum status forget_writer(const json_t *forget, FILE *to, struct error *err);

static __attribute__((noinline)) char *text_of(forget_writer *write, const json_t *document)
{
    char *text = NULL;
    size_t size = 0;
    struct error err;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_ok(write(document, to, &err), err);
    assert_int_equal(fclose(to), 0);
    return text;
}

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
    if (make_root(NULL))
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
    return remove_root(NULL);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--write"))
        return write_pages(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_the_numbers_of_its_matrix),
        cmocka_unit_test(a_spread_is_mean_and_sample_deviation),
        cmocka_unit_test(parents_follow_the_levels),
        cmocka_unit_test(it_beats_who_forgot_more_and_learned_no_more),
        cmocka_unit_test(it_beats_who_learned_less_and_forgot_no_less),
        cmocka_unit_test(within_the_spread_is_no),
        cmocka_unit_test(who_forgot_more_at_equal_learning_is_worse),
        cmocka_unit_test(between_the_two_a_line_answers),
        cmocka_unit_test(outside_of_both_it_cannot_be_said),
        cmocka_unit_test(one_seed_says_nothing),
        cmocka_unit_test(differences_are_within_seeds),
        cmocka_unit_test(rivals_are_of_the_same_tree),
        cmocka_unit_test_setup_teardown(folders_are_read, make_root, remove_root),
        cmocka_unit_test_setup_teardown(lines_may_lack_a_domain_and_norms, make_root, remove_root),
        cmocka_unit_test_setup_teardown(the_document_has_means_and_nodes, make_root, remove_root),
        cmocka_unit_test_setup_teardown(damaged_folders_are_left_out_by_name, make_root, remove_root),
        cmocka_unit_test_setup_teardown(runs_are_made_once_seed_by_seed, make_root, remove_root),
        cmocka_unit_test_setup_teardown(markdown_and_terminal_say_the_same, make_root, remove_root),
        cmocka_unit_test(nothing_done_makes_a_page_too),
        cmocka_unit_test(a_document_with_nothing_in_it_is_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
