/* What the categories of the profiler mean: today's names, those of old versions, and those of other devices. */
#include <strings.h>

#include "import/import_int.h"

struct meaning { const char *text; int kind; };

static const struct meaning whole[] = {
    {"cpu_op", EVENT_HOST_OP},
    {"operator", EVENT_HOST_OP},
    {"user_annotation", EVENT_ANNOTATION},
    {"python_function", EVENT_PYTHON},
    {"runtime", EVENT_RUNTIME},
    {"driver", EVENT_RUNTIME},
    {"hpu_op", EVENT_RUNTIME},
    {"kernel", EVENT_KERNEL},
    {"mtia_ccp_events", EVENT_KERNEL},
    {"memcpy", EVENT_MEMCPY},
    {"memset", EVENT_MEMSET},
    {"overhead", EVENT_OVERHEAD},
    {"gpu_user_annotation", CATEGORY_DROPPED},
    {"cuda_event", CATEGORY_DROPPED},
    {"ac2g", CATEGORY_FLOW},
    {"async", CATEGORY_FLOW},
    {"async_cpu_to_gpu", CATEGORY_FLOW},
    {"async_gpu", CATEGORY_FLOW},
};

/* After the name of a device: cuda_runtime, hip_runtime, gpu_memcpy, concurrent_kernel. */
static const struct meaning endings[] = {
    {"_runtime", EVENT_RUNTIME},
    {"_driver", EVENT_RUNTIME},
    {"_kernel", EVENT_KERNEL},
    {"_memcpy", EVENT_MEMCPY},
    {"_memset", EVENT_MEMSET},
    {"_sync", EVENT_STREAM_WAIT},
};

static int look_up(const char *text, size_t size)
{
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strlen(whole[i].text) == size && !strncasecmp(whole[i].text, text, size))
            return whole[i].kind;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t n = strlen(endings[i].text);
        if (size > n && !strncasecmp(endings[i].text, text + size - n, n))
            return endings[i].kind;
    }
    return CATEGORY_UNKNOWN;
}

/* A trace has few categories: each is looked up once and then found by its length and first letters. */
int category_kind(struct categories *c, const struct span *s)
{
    const size_t first = s->size ? (uint8_t)s->at[0] : 0;
    struct known_category *known = &c->known[(first ^ 3 * s->size) % CATEGORIES];
    if (s->size && known->size == s->size && !memcmp(known->text, s->at, s->size))
        return known->kind;
    const int kind = look_up(s->at, s->size);
    if (s->size && s->size < sizeof known->text) {
        memcpy(known->text, s->at, s->size);
        known->size = s->size;
        known->kind = kind;
    }
    return kind;
}
