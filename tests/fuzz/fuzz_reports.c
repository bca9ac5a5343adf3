/* Any bytes as the report.json that `hone verify A.json B.json` reads: refused with a message, or a verdict in which a report against
 * itself is never a regression; too much noise to say is none. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prove/prove.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_verdict(const struct verdict *v)
{
    require(v->n > 0);
    for (int i = 0; i < v->n; i++) {
        const struct gate *g = &v->gates[i];
        require(memchr(g->words, '\0', sizeof g->words) && g->words[0]);
        require(g->pass || !g->judged || !(g->value == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct verdict v;
    struct error err = {.text = ""};
    const int fd = memfd_create("report", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const enum status st = verify_reports(&v, path, path, 0.05, &err);
    if (st == OK)
        check_verdict(&v);
    else
        require(st == BAD_INPUT && err.text[0]);
    close(fd);
    return 0;
}
