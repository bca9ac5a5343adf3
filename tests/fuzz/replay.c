/* A plain main for a fuzz target: feeds it every file of a folder, and every prefix and single-bit flip of the small
 * ones, so that the ordinary tests run the target too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A private copy of exactly `size` bytes, so that a read past the end is seen by the sanitizers. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void feed_variants(uint8_t *data, size_t size)
{
    const size_t step = size / 400 + 1;
    feed(data, size);
    for (size_t n = 0; n < size; n += step)
        feed(data, n);
    for (size_t i = 0; i < size; i += step) {
        data[i] ^= (uint8_t)(1u << (i % 8));
        feed(data, size);
        data[i] ^= (uint8_t)(1u << (i % 8));
    }
}

int main(int argc, char **argv)
{
    DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
    int files = 0;
    if (!dir) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!f)
            continue;
        static uint8_t data[1 << 20];
        const size_t size = fread(data, 1, sizeof data, f);
        fclose(f);
        feed_variants(data, size);
        files++;
    }
    closedir(dir);
    printf("%d seed files\n", files);
    return files ? 0 : 1;
}
