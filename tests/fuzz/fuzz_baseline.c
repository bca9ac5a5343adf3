/* Any bytes as the report.json that `hone analyze --baseline` reads: refused with a message, or a comparison whose words and JSON can be
 * written. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_comparison(const struct diagnosis *d)
{
    char words[BASELINE_WORDS];
    struct error err;
    FILE *nowhere = fopen("/dev/null", "w");
    require(nowhere && d->baseline && d->baseline->before_us > 0);
    require(report_baseline_words(d->baseline, words)[0]);
    report_trace_print_terminal(d, nowhere, true);
    require(report_trace_write_json(d, nowhere, &err) == OK);
    require(report_trace_write_markdown(d, nowhere, &err) == OK);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct trace_op ops[] = {{.name = "aten::mm", .count = 8, .self_us = 900, .device_self_us = 2000},
                                    {.name = "aten::add", .count = 4, .self_us = 100, .device_self_us = 10}};
    static struct finding findings[] = {{.rule = "host-sync", .severity = SEVERITY_HIGH, .speedup = 1.3, .speedup_low = 1.2, .speedup_high = 1.4}};
    struct diagnosis d = {.device = "NVIDIA H200", .name = "t", .n_steps = 1, .ops = ops, .n_ops = 2, .findings = findings, .n_findings = 1,
                          .corrected = {.step_us = 1000, .host_us = 900, .device_us = 500}};
    struct trace_step step = {.total_us = 1000, .comm_us = 100};
    d.steps = &step;
    d.mean = step;
    char path[64];
    struct error err = {.text = ""};
    const int fd = memfd_create("report", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const enum status st = report_baseline(&d, path, 0.05, &err);
    if (st == OK)
        check_comparison(&d);
    else
        require(st == BAD_INPUT && err.text[0] && !d.baseline);
    arena_release(&d.arena);
    close(fd);
    return 0;
}
