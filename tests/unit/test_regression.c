/* Two reports of profiles: what became slower or larger fails, noise is no verdict, what cannot be compared is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/json_memory.h"
#include "prove/prove_int.h"
#include "support/check.h"
#include "verdict_check.h"

static const char REPORT[] =
    "{\"schema\":\"hone-report\",\"kind\":\"profile\",\"model\":{\"arch\":\"%s\",\"parameters\":1000,\"layers\":2,\"seq\":16,"
    "\"batch\":%d,\"accumulate\":1},\"machine\":{\"fingerprint\":\"%s\"%s},\"step\":{\"times_us\":[%s],\"median_us\":%g,\"p10_us\":90,\"p90_us\":120,"
    "\"tokens_per_s\":1e5},\"efficiency\":{\"mfu_percent\":40},\"memory\":{\"planned_bytes\":%g,\"rss_peak_bytes\":2e6}}";

static char path_a[64], path_b[64];

static int make_paths(void **state)
{
    (void)state;
    snprintf(path_a, sizeof path_a, "/tmp/hone-verify-a-%d.json", (int)getpid());
    snprintf(path_b, sizeof path_b, "/tmp/hone-verify-b-%d.json", (int)getpid());
    return 0;
}

static int remove_paths(void **state)
{
    (void)state;
    unlink(path_a);
    unlink(path_b);
    return 0;
}

static void write_report(const char *path, const char *arch, int batch, const char *machine, double us, double bytes)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    char times[96];
    snprintf(times, sizeof times, "%g,%g,%g,%g,%g", us, us, us, us, us);
    fprintf(f, REPORT, arch, batch, machine, "", times, us, bytes);
    fclose(f);
}

/* Of a median of 100 us, with these steps, and more on the machine. */
static void write_steps(const char *path, const char *machine, const char *times, double us)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, REPORT, "gpt", 4, "m", machine, times, us, 1e6);
    fclose(f);
}

static struct verdict verdict_on_reports(double us, double bytes, double limit)
{
    struct verdict v;
    struct error err;
    write_report(path_a, "gpt", 4, "m", 100, 1e6);
    write_report(path_b, "gpt", 4, "m", us, bytes);
    assert_ok(verify_reports(&v, path_a, path_b, limit, &err), err);
    assert_int_equal(v.n, 2);
    return v;
}

static void test_reports(void **state)
{
    (void)state;
    struct verdict v = verdict_on_reports(104, 1.04e6, 0.05);
    assert_failed(&v, NULL);
    assert_near(verdict_gate(&v, "step-time")->value, 0.04, 1e-9, "the change");
    v = verdict_on_reports(106, 1e6, 0.05);
    assert_failed(&v, "step-time", NULL);
    v = verdict_on_reports(106, 1e6, 0.1);
    assert_failed(&v, NULL);
    v = verdict_on_reports(50, 1.2e6, 0.05);
    assert_failed(&v, "peak-memory", NULL);
}

static void refuse_reports(const char *one, const char *two)
{
    struct verdict v;
    struct error err;
    assert_int_equal(verify_reports(&v, path_a, path_b, 0.05, &err), BAD_INPUT);
    assert_says(&err, one, two, NULL);
}

/* Steps of both overlap: whether the median of the second is above the limit, nobody knows. */
static void test_reports_within_noise(void **state)
{
    static const char near[] = "99,99,99.5,99.5,100,100,100,101,101,130", far[] = "90,92,94,96,98,102,104,106,108,200", mixed[] = "95,99,100,103,105,107,108,110,112,300";
    struct verdict v;
    struct error err;
    (void)state;
    write_steps(path_a, "", far, 100);
    write_steps(path_b, "", mixed, 106);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    const struct gate *g = verdict_gate(&v, "step-time");
    assert_true(!v.pass && !g->pass && !g->judged && g->low < 0.05 && g->high > 0.05 && g->low < g->value && g->value < g->high);
    assert_non_null(strstr(g->words, "too near to the limit"));
    assert_ok(verify_reports(&v, path_a, path_b, 0.5, &err), err);       /* far from it */
    assert_failed(&v, NULL);
    write_steps(path_a, "", near, 100);
    write_steps(path_b, "", "119,119,119.5,119.5,120,120,120,121,121,130", 120);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_failed(&v, "step-time", NULL);
    assert_true(verdict_gate(&v, "step-time")->judged);
    write_steps(path_b, ",\"threads\":2,\"usable_cores\":2,\"delayed_share\":0.27", near, 100);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_true(!v.pass && !verdict_gate(&v, "step-time")->judged);
    assert_non_null(strstr(verdict_gate(&v, "step-time")->words, "other work took the cores for 27 %"));
    write_steps(path_b, ",\"threads\":4,\"usable_cores\":2,\"delayed_share\":0.27", near, 100);       /* they are its own */
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_failed(&v, NULL);
}

/* That a report is of another number of threads, or of another device, is not what a change of the program did. */
static void test_reports_of_other_settings(void **state)
{
    struct verdict v;
    struct error err;
    (void)state;
    write_steps(path_a, ",\"threads\":1,\"device\":\"cpu\"", "100,100,100,100,100", 100);
    write_steps(path_b, ",\"threads\":2,\"device\":\"cuda\"", "50,50,50,50,50", 50);
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_failed(&v, NULL);
    assert_non_null(strstr(verdict_gate(&v, "step-time")->words, "; 2 threads after 1; device cuda after cpu"));
    write_steps(path_b, "", "50,50,50,50", 50);              /* all of four may lie on one side of the median, in one case of eight */
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    assert_true(!v.pass && !verdict_gate(&v, "step-time")->judged);
    json_t *j = verdict_json(&v);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(j, "gates"), 0), "high")));
    json_decref(j);
    write_steps(path_b, "", "", 50);
    refuse_reports(path_b, "has no step.times_us: an older hone wrote it; profile it again");
    write_steps(path_b, "", "50,-1", 50);
    refuse_reports(path_b, "step.times_us[1] is no time");
}

/* A report that was made while other work had the cores says so, and so does what is made of it. */
static void test_reports_of_a_busy_machine(void **state)
{
    static const char busy[] = "{\"schema\":\"hone-report\",\"kind\":\"profile\",\"model\":{\"arch\":\"gpt\",\"parameters\":1000,\"layers\":2,\"seq\":16,\"batch\":4,"
                               "\"accumulate\":1},\"machine\":{\"fingerprint\":\"m\",\"delayed_share\":0.25},\"step\":{\"times_us\":[200],\"median_us\":200,\"p10_us\":90,\"p90_us\":120,"
                               "\"tokens_per_s\":1e5},\"efficiency\":{\"mfu_percent\":40},\"memory\":{\"planned_bytes\":1e6,\"rss_peak_bytes\":2e6},"
                               "\"answers\":{\"warning\":\"Other work took the cores: times are too long\"}}";
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct verdict v;
        struct error err;
        write_report(path_a, "gpt", 4, "m", 100, 1e6);
        FILE *f = fopen(path_b, "w");
        assert_non_null(f);
        fputs(busy, f);
        fclose(f);
        assert_ok(verify_reports(&v, i ? path_b : path_a, i ? path_a : path_b, 0.05, &err), err);
        assert_near(v.delayed_share, 0.25, 1e-12, "delay");
        assert_non_null(strstr(v.warning, path_b));
        assert_non_null(strstr(v.warning, ": Other work took the cores"));
    }
    assert_true(verdict_on_reports(100, 1e6, 0.05).delayed_share < 0 && !*verdict_on_reports(100, 1e6, 0.05).warning);
}

static int calls, fail_at;          /* allocations of jansson, counted from 1; 0: none fails */

static void *allocate(size_t size) { return ++calls == fail_at ? NULL : malloc(size); }

/* Want of memory is not what is wrong with a report. */
static void test_reports_without_memory(void **state)
{
    (void)state;
    struct verdict v;
    struct error err;
    int most;
    write_report(path_a, "gpt", 4, "m", 100, 1e6);
    write_report(path_b, "gpt", 4, "m", 100, 1e6);
    json_memory_watch(allocate, NULL);
    calls = 0;
    assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);
    most = calls;
    assert_true(most > 20);
    for (int n = 1; n <= most; n++) {
        calls = 0;
        fail_at = n;
        assert_ok(verify_reports(&v, path_a, path_b, 0.05, &err), err);         /* there is a reserve */
        assert_failed(&v, NULL);
    }
    fail_at = 0;
}

static void test_reports_that_cannot_be_compared(void **state)
{
    (void)state;
    static const char *const bad[] = {"{", "[]", "{\"schema\":\"hone-report\",\"kind\":\"trace\"}",
                                      "{\"schema\":\"hone-report\",\"kind\":\"profile\",\"model\":3}"};
    static const char *const says[] = {"not JSON", "is no report", "is no report", "has no text model.arch"};
    write_report(path_a, "gpt", 4, "m", 100, 1e6);
    write_report(path_b, "llama", 4, "m", 100, 1e6);
    refuse_reports("different models", "gpt and llama");
    write_report(path_b, "gpt", 8, "m", 100, 1e6);
    refuse_reports("4 samples per update", "8");
    write_report(path_b, "gpt", 4, "n", 100, 1e6);
    refuse_reports("different machines", "m and n");
    write_report(path_b, "gpt", 4, "m", -100, 1e6);
    refuse_reports(path_b, "step.median_us is -100; expected a number above 0");
    write_report(path_b, "gpt", 4, "m", 100, 0);
    refuse_reports(path_b, "memory.planned_bytes is 0; expected a number above 0");
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(path_b, "w");
        fputs(bad[i], f);
        fclose(f);
        refuse_reports(path_b, says[i]);
    }
    unlink(path_b);
    refuse_reports(path_b, "No such file");
}

static void test_texts(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    struct verdict v = verdict_on_reports(106, 1e6, 0.05);
    snprintf(v.a, sizeof v.a, "a|b_*.json");
    FILE *f = open_memstream(&text, &size);
    verdict_markdown(&v, f);
    fclose(f);
    assert_non_null(strstr(text, "may not take the place of a\\|b\\_\\*.json"));
    assert_non_null(strstr(text, "| step-time | **FAIL** |"));
    assert_non_null(strstr(text, "| peak-memory | pass |"));
    free(text);
    json_t *j = verdict_json(&v), *gate = json_array_get(json_object_get(j, "gates"), 0);
    assert_string_equal(json_string_value(json_object_get(gate, "gate")), "step-time");
    assert_true(json_is_false(json_object_get(gate, "pass")) && json_is_false(json_object_get(j, "pass")));
    assert_near(json_number_value(json_object_get(gate, "a")), 100, 0, "a");
    assert_near(json_number_value(json_object_get(gate, "b")), 106, 0, "b");
    assert_near(json_number_value(json_object_get(gate, "limit")), 0.05, 0, "the limit");
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_reports_within_noise),
        cmocka_unit_test(test_reports_of_other_settings),
        cmocka_unit_test(test_reports_of_a_busy_machine),
        cmocka_unit_test(test_reports_without_memory),
        cmocka_unit_test(test_reports_that_cannot_be_compared),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, make_paths, remove_paths);
}
