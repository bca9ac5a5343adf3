/* hone forget: which runs are made, in which order, and which are kept; training is a stand-in that writes what a run writes. */
#include "forget_samples.h"
#include "report_check.h"

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
    snprintf(path, sizeof path, "%s/checkpoints/step-00000003", out);
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
    assert_ok(forget_plan(f, c, 2, sample_root, 2, &err), err);
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
    assert_ok(forget_plan(f, c, 2, sample_root, 2, &err), err);
    assert_int_equal(forget_train(f, c, &(struct forget_options){.train = pretend}, &err), BAD_INPUT);
    assert_says(&err, "t-seed1", "train.lr", "0.5", NULL);
    assert_string_equal(made, "");
    forget_free(f);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_are_made_once_seed_by_seed, make_sample_root, remove_sample_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
