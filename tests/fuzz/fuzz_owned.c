/* Any bytes as the list of a report's files: what is believed points nowhere but into its folder. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/owned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct owned o;
    struct error err = {.text = ""};
    if (owned_parse(&o, "input", (const char *)data, size, &err) != OK) {
        require(err.text[0] && err.status != OK && !o.files && !o.n);
        return 0;
    }
    for (int i = 0; i < o.n; i++) {
        const char *name = o.files[i].name, *slash = strchr(name, '/');
        require(*name && *name != '/' && *name != '.' && !strstr(name, "/.") && (!slash || (slash[1] && !strchr(slash + 1, '/'))));
        require(owned_by(&o, name) != NULL && strlen(o.files[i].report) < sizeof o.files[i].report);
    }
    owned_release(&o);
    return 0;
}
