/* Fuzz target: any bytes as a shard file. Opening either fails with a message or gives a dataset whose samples hold ids
 * of its vocabulary only, and stays safe when the file is cut under it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEQ = 4, MOST_SAMPLES = 2000 };

static void check_samples(const struct dataset *d, enum split split, bool cut)
{
    int32_t tokens[SEQ], targets[SEQ], segments[SEQ];
    struct error err = {.text = ""};
    const int64_t samples = dataset_samples(d, split);
    for (int64_t i = 0; i < samples && i < MOST_SAMPLES; i++) {
        if (dataset_sample(d, split, i, tokens, targets, segments, &err) != OK) {
            if (!cut || !err.text[0])
                abort();
            continue;
        }
        for (int k = 0; k < SEQ; k++)
            if (tokens[k] < 0 || tokens[k] >= dataset_vocab(d) || targets[k] < 0 || targets[k] >= dataset_vocab(d))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c = {.model = {.seq = SEQ, .segments = 2}, .data = {.source = SOURCE_BIN, .val_fraction = 0.25}};
    struct dataset *d = NULL;
    struct error err = {.text = ""};
    const int fd = memfd_create("shard", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(c.data.path, sizeof c.data.path, "/proc/self/fd/%d", fd);
    const enum status st = dataset_open(&d, &c, &err);
    if (st == OK) {
        check_samples(d, SPLIT_TRAIN, false);
        check_samples(d, SPLIT_VAL, false);
        if (ftruncate(fd, (off_t)(size / 2)) != 0)
            abort();
        check_samples(d, SPLIT_TRAIN, true);
    } else if (st != BAD_INPUT || !err.text[0]) {
        abort();
    }
    dataset_free(d);
    close(fd);
    return 0;
}
