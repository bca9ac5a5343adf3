/* Any bytes as a text file to train on, by bytes (the first byte is even) or by characters: refused with a message, or a dataset whose
 * ids are all of its vocabulary, also when the file is cut under it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEQ = 4, MOST_SAMPLES = 500 };

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_samples(const struct dataset *d, enum split split)
{
    int32_t tokens[SEQ], targets[SEQ], segments[SEQ];
    struct error err = {.text = ""};
    const int64_t samples = dataset_samples(d, split), vocab = dataset_vocab(d);
    for (int64_t i = 0; i < samples && i < MOST_SAMPLES; i++) {
        if (dataset_sample(d, split, i, tokens, targets, segments, &err) != OK) {
            require(err.text[0] != '\0');
            continue;
        }
        for (int k = 0; k < SEQ; k++)
            require(tokens[k] >= 0 && tokens[k] < vocab && targets[k] >= -1 && targets[k] < vocab);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c = {.model = {.seq = SEQ, .segments = 2}, .data = {.source = SOURCE_TEXT, .val_fraction = 0.25}};
    struct dataset *d = NULL;
    struct error err = {.text = ""};
    if (size == 0)
        return 0;
    c.data.tokens = data[0] % 2 ? TOKENS_CHAR : TOKENS_BYTE;
    const int fd = memfd_create("text", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1);
    snprintf(c.data.path, sizeof c.data.path, "/proc/self/fd/%d", fd);
    const enum status st = dataset_open(&d, &c, &err);
    if (st == OK) {
        check_samples(d, SPLIT_TRAIN);
        check_samples(d, SPLIT_VAL);
        require(ftruncate(fd, (off_t)(size / 2)) == 0);
        check_samples(d, SPLIT_TRAIN);
    } else {
        require(st == BAD_INPUT && err.text[0]);
    }
    dataset_free(d);
    close(fd);
    return 0;
}
