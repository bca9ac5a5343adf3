/* Any bytes as the watch.json that the hook in a watched program writes: refused with a message, or numbers that are finite and words that are
 * whole, whose report can be written. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "watch/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_window(const struct watched_window *w)
{
    require(w->steps >= 0 && w->first >= 0 && isfinite(w->step_us) && w->step_us >= 0 && (w->steps == 0) == (w->step_us == 0));
}

static void check_report(struct watched *w)
{
    struct finding finding = {.rule = "host-sync", .severity = SEVERITY_HIGH, .speedup = 1.3, .speedup_low = 1.2, .speedup_high = 1.4};
    struct trace_step step = {.total_us = 1000};
    const struct diagnosis d = {.device = "CPU", .name = "t", .n_steps = 1, .steps = &step, .mean = step, .findings = &finding, .n_findings = 1,
                                .corrected = {.step_us = 1000, .recorded_us = 1500, .given = true}, .watched = w};
    struct error err;
    FILE *nowhere = fopen("/dev/null", "w");
    require(nowhere != NULL);
    report_trace_print_terminal(&d, nowhere, true);
    require(report_trace_write_json(&d, nowhere, &err) == OK && report_trace_write_markdown(&d, nowhere, &err) == OK);
    require(report_trace_write_html(&d, nowhere, &err) == OK);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct watched_rank r;
    struct watched w = {.command = "python train.py", .ranks = &r, .n = 1};
    struct error err = {.text = ""};
    if (watched_parse(&r, &w.trial, &a, "input", (const char *)data, size, &err) == OK) {
        require(r.rank >= 0 && r.steps >= 0 && r.torch && r.steps_by && r.failure && r.n_notes >= 0);
        check_window(&r.undisturbed);
        check_window(&r.shapes);
        check_window(&r.stacks);
        check_report(&w);
    } else {
        require(err.text[0] && !w.trial);
    }
    json_decref(w.trial);
    arena_release(&a);
    return 0;
}
