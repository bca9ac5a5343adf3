/* Any bytes as the report.json that `hone simulate --from` reads: refused with a message, or times that can be counted with. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prove/simulate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_source(const struct sim_source *s)
{
    require(s->n_steps > 0 && s->n_ops > 0 && s->threads > 0 && s->cores >= 0 && s->config.model.vocab > 0);
    require(isfinite(s->gb_per_s) && s->gb_per_s >= 0);
    for (int i = 0; i < s->n_steps; i++)
        require(isfinite(s->steps_us[i]) && s->steps_us[i] > 0);
    for (int i = 0; i < s->n_ops; i++)
        require(s->ops[i].name && s->ops[i].kind && isfinite(s->ops[i].us) && s->ops[i].us >= 0);
    require(isfinite(sim_slowest_us(s->steps_us, s->n_steps, 1024)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sim_source s;             /* too large for a stack */
    char path[64];
    struct error err = {.text = ""};
    const int fd = memfd_create("report", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const enum status st = sim_source_read(&s, path, NULL, 0, &err);
    if (st == OK) {
        check_source(&s);
        sim_source_release(&s);
    } else {
        require(st == BAD_INPUT && err.text[0]);
    }
    close(fd);
    return 0;
}
