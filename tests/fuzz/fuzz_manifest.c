/* Any bytes as a checkpoint's manifest: refused with a message, or sound. And any JSON object can be what a caller adds
 * to a manifest: printed, it must be read back with the same step and its own checksum right. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void read_input(const char *text, size_t size)
{
    struct checkpoint_manifest m;
    struct error err = {.text = ""};
    if (checkpoint_manifest_parse(&m, "input", text, size, &err) != OK) {
        require(err.text[0] && err.status != OK);
        return;
    }
    require(m.step >= 0 && json_is_object(m.json));
    json_decref(m.json);
}

static void print_and_read(json_t *extra)
{
    const struct checkpoint_manifest m = {.step = 12, .files = {{1, 2}, {3, UINT64_MAX}}};
    struct checkpoint_manifest back;
    char *text;
    require(checkpoint_manifest_print(&text, &m, extra, NULL) == OK);
    require(checkpoint_manifest_parse(&back, "printed", text, strlen(text), NULL) == OK);
    require(back.step == m.step && memcmp(back.files, m.files, sizeof m.files) == 0);
    json_decref(back.json);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *extra = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    read_input((const char *)data, size);
    if (json_is_object(extra))
        print_and_read(extra);
    json_decref(extra);
    return 0;
}
