/* Watches the allocations of jansson; see json_memory.h. */
#include "core/json_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"

enum { RESERVE_BYTES = 1 << 20, ALIGN = 16 };

static void *(*allocate_with)(size_t size) = malloc;
static void (*give_up_with)(void);
static _Thread_local bool failed, loading;

/* The reserve is handed out from its beginning, and is whole again once all of it came back. */
static _Alignas(ALIGN) unsigned char reserve[RESERVE_BYTES];
static size_t reserve_used, reserve_pieces;
static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_reserve(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)reserve && (uintptr_t)p < (uintptr_t)reserve + RESERVE_BYTES;
}

static void *reserve_take(size_t size)
{
    void *p = NULL;
    pthread_mutex_lock(&reserve_lock);
    if (size <= RESERVE_BYTES - reserve_used) {
        p = reserve + reserve_used;
        reserve_used += (size + ALIGN - 1) / ALIGN * ALIGN;
        reserve_pieces++;
    }
    pthread_mutex_unlock(&reserve_lock);
    return p;
}

static void reserve_give(void)
{
    pthread_mutex_lock(&reserve_lock);
    if (--reserve_pieces == 0)
        reserve_used = 0;
    pthread_mutex_unlock(&reserve_lock);
}

static void *watched(size_t size)
{
    void *p = allocate_with(size);
    if (!p && loading) {
        p = reserve_take(size);
        if (!p && give_up_with)
            give_up_with();
    }
    failed |= !p;
    return p;
}

static void release(void *p)
{
    if (is_reserve(p))
        reserve_give();
    else
        free(p);
}

void json_memory_watch(void *(*allocate)(size_t size), void (*give_up)(void))
{
    allocate_with = allocate ? allocate : malloc;
    give_up_with = give_up;
    json_set_alloc_funcs(watched, release);
}

json_t *json_memory_load(const char *text, size_t size, size_t flags, json_error_t *why, bool *no_memory)
{
    failed = false;
    loading = true;
    json_t *j = json_loadb(text, size, flags, why);
    loading = false;
    *no_memory = failed || (!j && json_error_code(why) == json_error_out_of_memory);
    if (!*no_memory)
        return j;
    json_decref(j);                         /* it may lack something */
    return NULL;
}

struct buffer {
    char *text;
    size_t used, room;
    bool failed;                            /* for good: the dump goes on after some failures */
};

static int append(const char *piece, size_t size, void *context)
{
    struct buffer *b = context;
    if (b->used + size >= b->room) {
        const size_t room = 2 * (b->used + size) + 64;
        char *text = b->failed ? NULL : realloc(b->text, room);
        b->failed |= !text;
        if (!text)
            return -1;
        b->text = text;
        b->room = room;
    }
    if (b->failed)
        return -1;
    memcpy(b->text + b->used, piece, size);
    b->used += size;
    b->text[b->used] = '\0';
    return 0;
}

enum status json_memory_read_object(json_t **out, const char *path, size_t most, const char *what, struct error *err)
{
    char *text;
    size_t size;
    json_error_t why;
    bool no_memory;
    const enum status st = fs_read(path, &text, &size, most, err);
    if (st != OK)
        return st;
    *out = json_memory_load(text, size, JSON_REJECT_DUPLICATES, &why, &no_memory);
    free(text);
    if (no_memory)
        return error_set(err, CANNOT, "out of memory for '%s'", path);
    if (!*out)
        return error_set(err, BAD_INPUT, "'%s' is not JSON at line %d column %d: %s", path, why.line, why.column, why.text);
    if (json_is_object(*out))
        return OK;
    json_decref(*out);
    *out = NULL;
    return error_set(err, BAD_INPUT, "'%s' is not a JSON object%s", path, what);
}

char *json_memory_dump(const json_t *j, size_t flags)
{
    struct buffer b = {0};
    failed = false;
    if (j && json_dump_callback(j, append, &b, flags) == 0 && !b.failed && !failed)
        return b.text;
    free(b.text);
    return NULL;
}
