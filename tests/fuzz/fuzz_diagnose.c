/* Whatever can be read of a trace can be diagnosed and reported: no input may crash, hang or overflow on the way. */
#include <stdint.h>
#include <stdio.h>

#include "analyze/diagnosis.h"
#include "import/import.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct trace *t;
    struct diagnosis d;
    if (import_read_memory(&t, "fuzz", data, size, &err) != OK)
        return 0;
    const struct diagnose_options options = {.step_us = size % 3 ? 0 : 1000};
    if (diagnose(&d, &t, 1, &options, &err) == OK) {
        FILE *to = fopen("/dev/null", "w");
        if (to) {
            report_trace_write_json(&d, to, &err);
            report_trace_print_terminal(&d, to, true);
            fclose(to);
        }
        diagnosis_release(&d);
    }
    trace_free(t);
    return 0;
}
