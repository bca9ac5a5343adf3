/* Any bytes as the metrics.jsonl of a run that goes on: what stays are whole lines of it, in their order, bit for bit. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "train/train_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/hone-fuzz-metrics-XXXXXX", path[sizeof folder + 16];

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Lines that stay are lines of the file, in its order. */
static int are_lines_of(const char *kept, size_t n, const char *data, size_t size)
{
    const char *at = data;
    while (n) {
        const size_t length = (size_t)((const char *)memchr(kept, '\n', n) - kept) + 1;
        const char *end = memchr(at, '\n', size - (size_t)(at - data));
        if (!end)
            return 0;
        if ((size_t)(end + 1 - at) == length && !memcmp(at, kept, length)) {
            kept += length;
            n -= length;
        }
        at = end + 1;
    }
    return 1;
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void make_folder(void)
{
    require(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metrics *m;
    struct error err;
    char *kept;
    size_t n;
    if (!*path)
        make_folder();
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
    require(metrics_open(&m, folder, 20, size % 2, false, &err) == OK && metrics_close(m, &err) == OK);
    require(fs_read(path, &kept, &n, 0, &err) == OK);
    require(n <= size && (n == 0 || kept[n - 1] == '\n') && are_lines_of(kept, n, (const char *)data, size));
    free(kept);
    return 0;
}
