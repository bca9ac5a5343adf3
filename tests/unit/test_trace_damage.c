/* Traces that are cut off or have flipped bytes: whatever is left is read once, judged and reported, in bounded memory. That none
 * takes for ever is held by the limit on the time of a test. */
#include "support/check.h"

#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analyze/diagnosis.h"
#include "core/fs.h"
#include "core/rng.h"
#include "import/import.h"
#include "report/report.h"

enum { ROUNDS = 120, FLIPS = 12 };
#ifdef HONE_SANITIZED
static const long MOST_GROWTH_KB = 1 << 30;         /* freed memory is kept aside there: its growth says nothing */
#else
static const long MOST_GROWTH_KB = 96 << 10;        /* of resident memory: blocks of the reader and a small trace */
#endif

static FILE *nowhere;

/* No byte is read twice, and no event is made of nothing: the shortest takes two bytes. */
static void check_origin(const struct trace *t, size_t size)
{
    const struct trace_origin *o = &t->origin;
    assert_true(o->json_bytes >= 0 && (size_t)o->json_bytes <= size);
    assert_true(2 * (o->events_read + o->events_skipped + o->other_events) <= o->json_bytes);
    assert_true(t->n <= o->events_read);
    if (!o->truncated)
        assert_int_equal(o->json_bytes, size);
}

/* Reads, diagnoses and reports; every outcome but a crash is fine. Returns whether there was a trace. */
static bool judge(const char *data, size_t size)
{
    struct error err;
    struct trace *t;
    struct diagnosis d;
    if (import_read_memory(&t, "damaged", data, size, &err))
        return false;
    check_origin(t, size);
    const enum status st = diagnose(&d, &t, 1, NULL, &err);
    if (st == OK) {
        assert_int_equal(report_trace_write_json(&d, nowhere, &err), OK);
        assert_int_equal(report_trace_write_markdown(&d, nowhere, &err), OK);
        report_trace_print_terminal(&d, nowhere, false);
        diagnosis_release(&d);
    }
    trace_free(t);
    return st == OK;
}

static long resident_kb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void damage(const char *whole, size_t size)
{
    assert_true(judge(whole, size));
    char *copy = malloc(size);
    assert_non_null(copy);
    const long before = resident_kb();
    int judged = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        memcpy(copy, whole, size);
        for (uint32_t k = 0; k < FLIPS && i % 2; k++)
            copy[rng_below(7, i, k, size)] = (char)rng_below(8, i, k, 256);
        judged += judge(copy, i % 3 ? size : rng_below(9, i, 0, size));
    }
    assert_true(judged > ROUNDS / 4);               /* most damage leaves a trace */
    assert_true(resident_kb() - before < MOST_GROWTH_KB);
    free(copy);
}

static void small_step(void **state)
{
    (void)state;
    char *whole;
    size_t size;
    assert_int_equal(fs_read(HONE_CONFIGS "/../tests/fuzz/seeds/diagnose/step.json", &whole, &size, 0, NULL), OK);
    damage(whole, size);
    free(whole);
}

/* A trace that a profiler wrote, from the folder of shared traces (see test_shared_traces.c). */
static void real_trace(void **state)
{
    (void)state;
    enum { ROOM = 1 << 20 };
    const char *given = getenv("HONE_TRACES");
    char path[4200], *packed;
    size_t size;
    snprintf(path, sizeof path, "%s/public/hta_amd_mi250_minitoy_train.json.gz",
             given ? given : HONE_CONFIGS "/../../shared/traces");
    if (!fs_exists(path)) {
        print_message("skipped: there is no '%s'; set HONE_TRACES to the folder of traces\n", path);
        skip();
    }
    assert_int_equal(fs_read(path, &packed, &size, 0, NULL), OK);
    char *whole = malloc(ROOM);
    struct inflate_state inflate;
    assert_non_null(whole);
    isal_inflate_init(&inflate);
    inflate.crc_flag = ISAL_GZIP;
    inflate.next_in = (uint8_t *)packed;
    inflate.avail_in = (uint32_t)size;
    inflate.next_out = (uint8_t *)whole;
    inflate.avail_out = ROOM;
    assert_int_equal(isal_inflate(&inflate), ISAL_DECOMP_OK);
    damage(whole, inflate.total_out);
    free(whole);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_step), cmocka_unit_test(real_trace)};
    nowhere = fopen("/dev/null", "w");
    const int failed = nowhere ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    if (nowhere)
        fclose(nowhere);
    return failed;
}
