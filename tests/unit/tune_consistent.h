/* One set of numbers: what every report of tune must hold, whatever was measured. */
#ifndef HONE_TESTS_TUNE_CONSISTENT_H
#define HONE_TESTS_TUNE_CONSISTENT_H

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "prove/tune.h"
#include "support/check.h"

static inline double tune_number(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* Where both are known they are equal but for rounding. */
static inline void assert_ratio(double is, double should_be, const char *what)
{
    if (isfinite(is) && isfinite(should_be))
        assert_near(is, should_be, 1e-6 * fabs(should_be), what);
}

static inline void assert_points_agree(const json_t *j, bool other_peak)
{
    const json_t *a = json_object_get(j, "before"), *b = json_object_get(j, "after");
    const double speedup = tune_number(j, "speedup");
    assert_ratio(tune_number(a, "step_us") / tune_number(b, "step_us"), speedup, "step and speed-up");
    assert_ratio(tune_number(b, "tokens_per_s") / tune_number(a, "tokens_per_s"), speedup, "tokens and speed-up");
    assert_ratio(tune_number(b, "samples_per_s") / tune_number(a, "samples_per_s"), speedup, "samples and speed-up");
    if (!other_peak)
        assert_ratio(tune_number(b, "mfu_percent") / tune_number(a, "mfu_percent"), speedup, "MFU and speed-up");
    assert_false(tune_number(j, "speedup_low") > speedup || tune_number(j, "speedup_high") < speedup);
}

/* The gate of throughput says the same as the numbers beside it. */
static inline void assert_gates_agree(const json_t *j)
{
    const json_t *list = json_object_get(j, "gates"), *g;
    bool all = true;
    size_t i;
    json_array_foreach(list, i, g) {
        all &= json_is_true(json_object_get(g, "pass"));
        if (!strcmp(json_string_value(json_object_get(g, "gate")), "throughput") && !json_is_true(json_object_get(j, "taken_back"))) {
            assert_ratio(tune_number(g, "value"), tune_number(j, "speedup"), "the gate and the speed-up");
            assert_ratio(tune_number(g, "low"), tune_number(j, "speedup_low"), "the gate and its interval");
        }
    }
    if (json_is_array(list))
        assert_int_equal(all, json_is_true(json_object_get(j, "gates_pass")));
}

static inline void assert_stages_agree(const json_t *j)
{
    const json_t *list = json_object_get(j, "stages"), *s;
    double product = 1;
    size_t i;
    json_array_foreach(list, i, s) {
        const bool kept = json_is_true(json_object_get(s, "kept")), measured = json_is_number(json_object_get(s, "measured_speedup"));
        const char *outcome = json_string_value(json_object_get(s, "outcome"));
        assert_int_equal(kept, !strcmp(outcome, "kept"));
        assert_int_equal(measured, strcmp(outcome, "not tried") != 0);
        if (kept && !json_is_true(json_object_get(s, "around")))
            product *= tune_number(s, "measured_speedup");
        assert_ratio(tune_number(s, "cumulative_speedup"), product, "what was kept so far");
    }
}

/* Where the step is the same, the gain of fewer evaluations is that of the whole run, and what it saves is what the run became shorter by. */
static inline void assert_evaluation_agrees(const json_t *j)
{
    const json_t *s, *run = json_object_get(j, "run"), *only = NULL;
    const double before = tune_number(run, "before_s"), after = tune_number(run, "after_s");
    int kept = 0;
    size_t i;
    json_array_foreach(json_object_get(j, "stages"), i, s)
        if (json_is_true(json_object_get(s, "kept"))) {
            only = s;
            kept++;
        }
    if (kept != 1 || !json_is_true(json_object_get(only, "around")))
        return;
    assert_ratio(before / after, tune_number(only, "measured_speedup"), "the whole run and the gain of fewer evaluations");
    assert_ratio(before - after, tune_number(only, "saved_s"), "the whole run and what fewer evaluations save");
}

static inline void assert_consistent(const json_t *j)
{
    const json_t *list = json_object_get(j, "sizes"), *s;
    const char *a = json_string_value(json_object_get(json_object_get(j, "before"), "mfu_peak_type"));
    const char *b = json_string_value(json_object_get(json_object_get(j, "after"), "mfu_peak_type"));
    const bool other_peak = a && b && strcmp(a, b);
    size_t i;
    assert_points_agree(j, other_peak);
    assert_gates_agree(j);
    assert_stages_agree(j);
    assert_evaluation_agrees(j);
    json_array_foreach(list, i, s) {
        assert_points_agree(s, other_peak);
        assert_gates_agree(s);
    }
    json_array_foreach(json_object_get(j, "references"), i, s)
        assert_ratio(tune_number(s, "step_us") / tune_number(s, "tuned_step_us"), tune_number(s, "speedup"), "a reference");
    if (!json_array_size(json_object_get(j, "changes")) && isfinite(tune_number(j, "speedup")))
        assert_near(tune_number(j, "speedup"), 1, 0, "the speed-up of nothing");
}

static inline void assert_consistent_result(const struct tune_result *r)
{
    json_t *j = tune_json(r);
    assert_non_null(j);
    assert_consistent(j);
    json_decref(j);
}

#endif
