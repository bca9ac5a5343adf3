/* Phases of real traces, where the folder ../shared/traces is there: what was planted in one phase, and measured to cost so much without the
 * profiler, is what this phase has more than that of the step without a fault. */
#include <unistd.h>

#include "unit/trace_models.h"

static const char *path_of(const char *name)
{
    static char path[4200];
    const char *folder = getenv("HONE_TRACES");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : HONE_CONFIGS "/../../shared/traces", name);
    return path;
}

/* ms of a step without the profiler; its sums are checked, too. */
static double phase_of(const char *name, double step_ms, const char *phase)
{
    struct judged j;
    struct trace *t = NULL;
    struct error err;
    double us = 0, found = -1;
    assert_ok(import_read(&t, path_of(name), NULL, NULL, &err), err);
    j = trace_judge(t, 1e3 * step_ms);
    for (int i = 0; i < j.d.n_iteration; i++) {
        us += j.d.iteration[i].us;
        if (!strcmp(j.d.iteration[i].name, phase))
            found = j.d.iteration[i].us / 1e3;
    }
    assert_near(us, j.d.corrected.step_us, 1e-6 * us, name);
    assert_true(found >= 0);
    judged_release(&j);
    return found;
}

static void a_phase_has_what_was_planted_in_it(void **state)
{
    (void)state;
    static const struct { const char *trace, *clean, *phase; double ms, clean_ms, won_ms; } planted[] = {
        {"planted/h200-gpt-eval-too-often", "planted/h200-gpt-clean", "evaluation", 27.535, 13.772, 9.56},
        {"planted/h200-gpt-host-python", "planted/h200-gpt-clean", "other", 30.436, 13.772, 12.08},
        {"planted/h200-gpt-small-pageable-h2d", "planted/h200-gpt-clean", "data", 20.107, 13.772, 3.26},
        {"planted-resnet/resnet-dataloader-stall", "planted-resnet/resnet-clean", "data", 55.808, 14.902, 41.38},
        {"planted-cpu/cpugpt-eval-too-often", "planted-cpu/cpugpt-clean", "evaluation", 127.896, 102.293, 37.88},
        {"planted-cpu/cpugpt-host-python", "planted-cpu/cpugpt-clean", "other", 124.207, 102.293, 22.22}};
    if (access(path_of("planted"), R_OK)) {
        print_message("skipped: there is no '%s'\n", path_of("planted"));
        skip();
    }
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        char trace[128], clean[128];
        snprintf(trace, sizeof trace, "%s.json.gz", planted[i].trace);
        snprintf(clean, sizeof clean, "%s.json.gz", planted[i].clean);
        const double more = phase_of(trace, planted[i].ms, planted[i].phase) - phase_of(clean, planted[i].clean_ms, planted[i].phase);
        assert_near(more, planted[i].won_ms, 0.25 * planted[i].won_ms, planted[i].trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_phase_has_what_was_planted_in_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
