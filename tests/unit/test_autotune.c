/* autotune: which ops are timed, and that the fastest variant is taken, once. */
#include "ops/cpu/bf16.h"
#include "ops/cpu/kernel.h"
#include "support/backends.h"
#include "support/optimized.h"
#include "support/own_cache.h"

#include <jansson.h>
#include <time.h>

/* ---- the pass ---- */

static bool is_product(const struct op *op)
{
    static const char *const names[] = {"matmul", "project", "project_grad", "linear_gelu", "linear_loss"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op_info(op->kind)->name, names[i]) == 0)
            return true;
    return false;
}

/* Behind it stands at most the number of the call that the op is a part of. */
static int lines_that_say(const struct program *p, const char *mark)
{
    char line[512];
    int n = 0;
    FILE *f = tmpfile();
    program_print(p, f);
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, mark), *rest = at ? at + strlen(mark) : "";
        n += strcmp(rest, "\n") == 0 || strncmp(rest, " call ", 6) == 0;
    }
    fclose(f);
    return n;
}

static void test_marks_the_products(void **state)
{
    (void)state;
    const pass_set autotune = one_pass("autotune"), sets[] = {autotune, PASS_SET_ALL};
    for (int model = 0; model < SMALL_MODELS; model++)
        for (int k = 0; k < 2; k++) {
            const struct optimizer_settings s = small_settings();
            int places[PASSES_MAX] = {0}, products = 0;
            struct program *p = optimized_training(small_models[model], &s, sets[k], NULL, places);
            for (int i = 0; i < p->n_ops; i++) {
                assert_int_equal(p->ops[i].timed, is_product(&p->ops[i]));
                products += is_product(&p->ops[i]);
            }
            assert_true(products > 5);
            assert_int_equal(places[pass_find("autotune")], products);
            assert_int_equal(lines_that_say(p, "] timed"), products);
            assert_int_equal(pass_autotune(p), 0);
            program_free(p);
        }
}

/* ---- choosing, with kernels whose times are known ---- */

static double fake_us[3];
static int fake_runs;
static int fake_rounds, busy_rounds;            /* runs of the rule so far; as long as they are no more than this, somebody else is at work, too */

static double worked_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void work_a_while(const struct kernel_call *c, const struct kernel_thread *t)
{
    (void)t;
    fake_runs++;
    fake_rounds += c->variant == 0;
    const double until = worked_us() + fake_us[c->variant] * (fake_rounds <= busy_rounds ? 2 : 1);
    while (worked_us() < until)
        ;
}

static const char *const fake_variants[] = {"rule", "one", "two", NULL};
static double fake_limit[] = {1, 1, 1};         /* of what the rule takes */
static double fake_below(int variant) { return fake_limit[variant]; }
static const struct kernel fake = {.op = OP_MATMUL, .name = "fake", .run = work_a_while, .serial = true,
                                   .variants = fake_variants, .below = fake_below};

/* A product (rows, 4) = (rows, 8) w^T by the fake kernel, or an op of another kind. */
struct fake_call {
    struct program *program;
    struct kernel_call call;
    void *in[2], *out[1];
    float memory[3][4096];
};

static struct fake_call *fake_new(enum op_kind kind, int64_t rows, int64_t columns)
{
    struct fake_call *f = xcalloc(1, sizeof *f);
    struct program *p = f->program = program_new("fake");
    const value_id x = program_add_value(p, "x", kind == OP_ACCUMULATE ? VALUE_STATE : VALUE_ACTIVATION, F32,
                                         shape_of(2, rows, (int64_t)8));
    const value_id w = program_add_value(p, "w", VALUE_ACTIVATION, F32, shape_of(2, columns, (int64_t)8)), in[] = {x, w};
    const int at = program_add_op(p, kind, (struct op_attrs){.trans_b = kind == OP_MATMUL}, "y", 2, in);
    assert_int_equal(at, 0);
    p->ops[0].timed = true;
    for (int i = 0; i < 2; i++)
        f->in[i] = f->memory[i];
    f->out[0] = f->memory[2];
    f->call = (struct kernel_call){.kernel = &fake, .program = p, .op = &p->ops[0], .in = f->in, .out = f->out};
    return f;
}

static void fake_free(struct fake_call *f)
{
    program_free(f->program);
    free(f);
}

/* The variant of a product of this many rows when the three take so long; *runs (may be NULL) gets how often they ran. */
static int chosen(struct backend *b, int64_t rows, double us0, double us1, double us2, int *runs)
{
    struct fake_call *f = fake_new(OP_MATMUL, rows, 4);
    fake_us[0] = us0;
    fake_us[1] = us1;
    fake_us[2] = us2;
    fake_runs = fake_rounds = 0;
    cpu_tune(b, &f->call, 1);
    const int variant = f->call.variant;
    if (variant)
        assert_near(f->call.saves_us, us0 - fake_us[variant], 0.2 * us0, "what is saved");
    else
        assert_true(f->call.saves_us == 0);
    if (runs)
        *runs = fake_runs;
    fake_free(f);
    return variant;
}

static void test_takes_the_fastest(void **state)
{
    (void)state;
    assert_int_equal(chosen(tuned, 1, 60, 40, 80, NULL), 1);
    assert_int_equal(chosen(tuned, 2, 60, 50, 40, NULL), 2);
    assert_int_equal(chosen(tuned, 3, 40, 80, 60, NULL), 0);
    assert_int_equal(chosen(tuned, 4, 1000, 995, 998, NULL), 0);        /* not worth a change */
}

/* A way that costs the rest of a step something has to win more; one that a machine has not is never run. */
static void test_some_have_to_win_more(void **state)
{
    (void)state;
    fake_limit[1] = 0.75;
    assert_int_equal(chosen(tuned, 10, 60, 51, 80, NULL), 0);
    assert_int_equal(chosen(tuned, 11, 60, 51, 54, NULL), 2);
    assert_int_equal(chosen(tuned, 12, 60, 36, 54, NULL), 1);
    fake_limit[1] = 0;
    assert_int_equal(chosen(tuned, 13, 60, 20, 54, NULL), 2);
    fake_limit[1] = 1;
}

/* Three of six rounds on a machine that is busy: the middle of one series is of those, that of the other is not. */
static void test_machine_changes_its_pace(void **state)
{
    (void)state;
    busy_rounds = 1 + 3;                                                /* the first run is none */
    assert_int_equal(chosen(tuned, 6, 2000, 1800, 8000, NULL), 1);
    assert_int_equal(fake_rounds, 1 + 6);
    assert_int_equal(chosen(tuned, 7, 1800, 2000, 8000, NULL), 0);
    busy_rounds = 0;
}

static void test_times_once(void **state)
{
    (void)state;
    int runs;
    assert_int_equal(chosen(tuned, 1, 60, 40, 80, &runs), 1);
    assert_true(runs > 30);
    for (int knows = 1; knows >= 0; knows--) {                          /* then from the file alone */
        assert_int_equal(chosen(tuned, 1, 60, 40, 80, &runs), 1);
        assert_int_equal(runs, 0);
        choices_forget();
    }
    assert_int_equal(unlink(choices_path()), 0);
    assert_int_equal(chosen(tuned, 1, 40, 60, 80, &runs), 0);
    assert_true(runs > 30);
}

/* The file as another build would have written it: its kernels have another name. */
static void rename_kernels(void)
{
    char *text, *at;
    size_t size;
    assert_int_equal(fs_read(choices_path(), &text, &size, 1 << 20, NULL), OK);
    assert_non_null(at = strstr(text, cpu_kernels_id));
    at[0] = at[0] == '0' ? '1' : '0';
    assert_null(strstr(text, cpu_kernels_id));
    assert_int_equal(fs_write_synced(choices_path(), text, size, NULL), OK);
    free(text);
    choices_forget();
}

/* What was chosen among other kernels does not count here, and stays for the build that has them. */
static void test_other_kernels(void **state)
{
    (void)state;
    int runs;
    assert_int_equal(strspn(cpu_kernels_id, "0123456789abcdef"), 16);
    assert_int_equal(cpu_kernels_id[16], '\0');
    assert_int_equal(chosen(tuned, 1, 60, 40, 80, NULL), 1);
    rename_kernels();
    assert_int_equal(chosen(tuned, 1, 60, 80, 40, &runs), 2);
    assert_true(runs > 30);
    json_t *root = json_load_file(choices_path(), 0, NULL);
    assert_int_equal(json_object_size(json_object_get(root, "choices")), 2);
    json_decref(root);
}

/* Calls of one kind of work share its timing, and other shapes, attributes and threads are other work. */
static void test_what_is_the_same_work(void **state)
{
    (void)state;
    struct backend *const one = new_backend(1, false);
    struct fake_call *a = fake_new(OP_MATMUL, 5, 4), *b = fake_new(OP_MATMUL, 5, 4), *c = fake_new(OP_MATMUL, 5, 3);
    struct kernel_call calls[] = {a->call, b->call, c->call};
    int runs;
    fake_us[0] = fake_us[2] = 90;
    fake_us[1] = 60;
    cpu_tune(tuned, calls, 3);
    assert_true(calls[0].variant == 1 && calls[1].variant == 1 && calls[2].variant == 1);
    assert_int_equal(chosen(tuned, 5, 90, 60, 90, &runs), 1);
    assert_int_equal(runs, 0);
    assert_int_equal(chosen(one, 5, 60, 90, 90, &runs), 0);
    assert_true(runs > 0);
    a->program->ops[0].attrs.round = ROUND_BF16;
    fake_runs = 0;
    cpu_tune(tuned, &a->call, 1);
    assert_true(cpu_has_bf16() ? fake_runs == 0 : fake_runs > 0);       /* where the CPU multiplies it, there is one way */
    fake_free(a);
    fake_free(b);
    fake_free(c);
    one->free(one);
}

static void test_not_timed(void **state)
{
    (void)state;
    struct fake_call *f = fake_new(OP_MATMUL, 5, 4), *in_place = fake_new(OP_ACCUMULATE, 4, 4);
    f->program->ops[0].timed = false;
    fake_us[0] = 60;
    fake_us[1] = fake_us[2] = 40;
    fake_runs = 0;
    cpu_tune(tuned, &f->call, 1);
    cpu_tune(tuned, &in_place->call, 1);
    cpu_tune(tuned, NULL, 0);
    assert_int_equal(fake_runs, 0);
    assert_int_equal(f->call.variant, 0);
    fake_free(f);
    fake_free(in_place);
    assert_false(fs_exists(choices_path()));
}

/* A choice that the next run would not know must not be made. */
static void test_cannot_remember(void **state)
{
    (void)state;
    char path[96];
    int runs;
    snprintf(path, sizeof path, "%s/file", own_cache);
    assert_int_equal(fs_write_synced(path, "x", 1, NULL), OK);
    setenv("XDG_CACHE_HOME", path, 1);
    assert_int_equal(chosen(tuned, 1, 60, 40, 80, &runs), 0);
    assert_int_equal(runs, 0);
}

static void test_damaged_file(void **state)
{
    (void)state;
    int runs;
    assert_int_equal(chosen(tuned, 1, 60, 40, 80, NULL), 1);
    choices_forget();
    assert_int_equal(fs_write_synced(choices_path(), "{\"version\":1,\"choi", 17, NULL), OK);
    assert_int_equal(chosen(tuned, 1, 60, 80, 40, &runs), 2);
    assert_true(runs > 0);
    choices_forget();
    assert_int_equal(chosen(tuned, 1, 60, 80, 40, &runs), 2);
    assert_int_equal(runs, 0);
}

/* ---- watching ---- */

static int told[8][2], n_told;          /* done, total */

static void note_told(void *context, int done, int total)
{
    assert_ptr_equal(context, told);
    assert_true(n_told < 8);
    told[n_told][0] = done;
    told[n_told++][1] = total;
}

/* 0, 1, ... total of total, or nothing where total is 0. */
static void assert_told(int total)
{
    assert_int_equal(n_told, total ? total + 1 : 0);
    for (int i = 0; i < n_told; i++)
        assert_true(told[i][0] == i && told[i][1] == total);
    n_told = 0;
}

/* What is timed is told one by one, without what is known: one of four calls is known, and two are the same work. */
static void test_tells_what_is_timed(void **state)
{
    (void)state;
    struct fake_call *f[4];
    for (int i = 0; i < 4; i++)
        f[i] = fake_new(OP_MATMUL, 5, 4 - (i + 1) / 2);            /* 4, 3, 3, 2 columns */
    struct kernel_call calls[] = {f[0]->call, f[1]->call, f[2]->call, f[3]->call};
    choices_watch(note_told, told);
    assert_int_equal(chosen(tuned, 5, 60, 40, 80, NULL), 1);
    assert_told(1);
    cpu_tune(tuned, calls, 4);
    assert_told(2);
    for (int knows = 1; knows >= 0; knows--) {                          /* then from the file alone */
        cpu_tune(tuned, calls, 4);
        assert_told(0);
        choices_forget();
    }
    setenv("XDG_CACHE_HOME", choices_path(), 1);                        /* no folder: nothing can be remembered */
    cpu_tune(tuned, calls, 4);
    assert_told(0);
    choices_watch(NULL, NULL);
    setenv("XDG_CACHE_HOME", own_cache, 1);
    assert_int_equal(chosen(tuned, 6, 60, 40, 80, NULL), 1);            /* and nobody listens */
    assert_told(0);
    for (int i = 0; i < 4; i++)
        fake_free(f[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITH_CACHE(test_marks_the_products), TEST_WITH_CACHE(test_takes_the_fastest), TEST_WITH_CACHE(test_some_have_to_win_more), TEST_WITH_CACHE(test_machine_changes_its_pace), TEST_WITH_CACHE(test_times_once),
        TEST_WITH_CACHE(test_other_kernels), TEST_WITH_CACHE(test_what_is_the_same_work), TEST_WITH_CACHE(test_not_timed), TEST_WITH_CACHE(test_cannot_remember),
        TEST_WITH_CACHE(test_damaged_file), TEST_WITH_CACHE(test_tells_what_is_timed),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
