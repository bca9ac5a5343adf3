/* The bytes of a trace in blocks: read and, where gzip, inflated on a thread of its own while the reader works on the
 * blocks before. A few blocks are all the memory this takes, whatever the size of the file. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/gunzip.h"
#include "import/import_int.h"

enum { BLOCKS = 4, INPUT = 256 << 10 };

struct source {
    struct source_from from;
    char *name;
    size_t headroom;
    struct source_block blocks[BLOCKS];

    /* owned by whoever fills */
    struct gunzip *gunzip;              /* NULL: plain */
    unsigned char *input;               /* (INPUT) raw bytes, those in [at, have) not yet used */
    size_t at, have, copied;            /* copied: of data in memory */
    int64_t file_bytes, text_bytes;
    bool started, input_ended;
    char problem[256];
    struct error err;                   /* of the block whose status is not OK */

    /* shared, under the lock */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t filled, taken;              /* blocks, counted from the start */
    bool stop;
};

static void close_all(struct source *s)
{
    for (int i = 0; i < BLOCKS; i++)
        free(s->blocks[i].memory);
    gunzip_free(s->gunzip);
    free(s->input);
    free(s->name);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* Raw bytes of the file. Returns -1 with errno. */
static ssize_t read_raw(struct source *s, void *to, size_t room)
{
    ssize_t n;
    if (s->from.data) {
        const size_t left = s->from.size - s->copied;
        n = (ssize_t)(left < room ? left : room);
        if (n)
            memcpy(to, (const char *)s->from.data + s->copied, (size_t)n);
        s->copied += (size_t)n;
    } else {
        do
            n = read(s->from.fd, to, room);
        while (n < 0 && errno == EINTR);
    }
    s->input_ended |= n == 0;
    s->file_bytes += n > 0 ? n : 0;
    return n;
}

static enum status read_input(struct source *s)
{
    const ssize_t n = read_raw(s, s->input, INPUT);
    s->at = 0;
    s->have = n > 0 ? (size_t)n : 0;
    return n < 0 ? error_errno(&s->err, "cannot read '%s' after byte %lld", s->name, (long long)s->file_bytes) : OK;
}

/* Takes the first bytes and sees whether they are gzip's. A pipe may give them one by one. */
static enum status start(struct source *s)
{
    s->started = true;
    while (s->have < 2 && !s->input_ended) {
        const ssize_t n = read_raw(s, s->input + s->have, INPUT - s->have);
        if (n < 0)
            return error_errno(&s->err, "cannot read '%s'", s->name);
        s->have += (size_t)n;
    }
    if (s->have < 2 || s->input[0] != 0x1f || s->input[1] != 0x8b)
        return OK;
    s->gunzip = gunzip_new();
    return s->gunzip ? OK : error_no_memory(&s->err, "the decompressor", 1 << 18);
}

static enum status fill_plain(struct source *s, struct source_block *b)
{
    const size_t left = s->have - s->at, first = left < s->from.block ? left : s->from.block;
    memcpy(b->data, s->input + s->at, first);
    s->at += first;
    b->size = first;
    while (b->size < s->from.block && !s->input_ended) {
        const ssize_t n = read_raw(s, b->data + b->size, s->from.block - b->size);
        if (n < 0)
            return error_errno(&s->err, "cannot read '%s' after byte %lld", s->name, (long long)s->file_bytes);
        b->size += (size_t)n;
    }
    b->last = s->input_ended && s->at == s->have;
    return OK;
}

static void note_problem(struct source *s, const char *what)
{
    const int64_t used = s->file_bytes - (int64_t)(s->have - s->at);
    snprintf(s->problem, sizeof s->problem, "the compressed file ends too early or is damaged: %s at its byte %lld "
             "(byte %lld of the text)", what, (long long)used, (long long)s->text_bytes);
}

static enum status fill_gzip(struct source *s, struct source_block *b)
{
    while (b->size < s->from.block) {
        size_t taken;
        if (s->at == s->have && !s->input_ended && read_input(s) != OK)
            return s->err.status;
        const size_t n = gunzip_write(s->gunzip, s->input + s->at, s->have - s->at, &taken, b->data + b->size,
                                      s->from.block - b->size);
        b->size += n;
        s->at += taken;
        s->text_bytes += (int64_t)n;
        const bool stuck = n == 0 && s->at == s->have && s->input_ended;
        b->last = stuck || gunzip_damage(s->gunzip);
        if (b->last)
            break;
    }
    if (b->last && (gunzip_damage(s->gunzip) || !gunzip_whole(s->gunzip)))
        note_problem(s, gunzip_damage(s->gunzip) ? gunzip_damage(s->gunzip) : "the end is missing");
    return OK;
}

static void fill(struct source *s, struct source_block *b)
{
    b->status = s->started ? OK : start(s);
    b->size = 0;
    b->last = false;
    if (b->status == OK)
        b->status = s->gunzip ? fill_gzip(s, b) : fill_plain(s, b);
    memset(b->data + b->size, 0, SCAN_PAD);
    b->file_bytes = s->file_bytes;
}

static void *read_ahead(void *context)
{
    struct source *s = context;
    bool more = true;
    while (more) {
        pthread_mutex_lock(&s->lock);
        while (!s->stop && s->filled - s->taken >= BLOCKS - 2)      /* the reader holds two */
            pthread_cond_wait(&s->changed, &s->lock);
        const bool stop = s->stop;
        struct source_block *b = &s->blocks[s->filled % BLOCKS];
        pthread_mutex_unlock(&s->lock);
        if (stop)
            break;
        fill(s, b);
        more = b->status == OK && !b->last;
        pthread_mutex_lock(&s->lock);
        s->filled++;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static bool make_blocks(struct source *s)
{
    const size_t bytes = s->headroom + s->from.block + SCAN_PAD;
    s->input = malloc(INPUT);
    bool all = s->input;
    for (int i = 0; i < BLOCKS; i++) {
        s->blocks[i].memory = malloc(bytes);    /* most of the headroom is never touched */
        s->blocks[i].data = s->blocks[i].memory ? s->blocks[i].memory + s->headroom : NULL;
        all = all && s->blocks[i].memory;
    }
    return all;
}

enum status source_new(struct source **out, const struct source_from *from, const char *name, struct error *err)
{
    struct source *s = xcalloc(1, sizeof *s);
    const bool gzip = from->data && from->size && *(const uint8_t *)from->data == 0x1f;
    const bool small = from->data && from->size < IMPORT_LONGEST && !gzip;
    s->from = *from;
    s->name = xstrdup(name);
    s->headroom = small ? from->size : IMPORT_LONGEST;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (!make_blocks(s)) {
        close_all(s);
        return error_no_memory(err, "reading a trace", BLOCKS * (IMPORT_LONGEST + from->block));
    }
    if (from->threaded)
        s->running = pthread_create(&s->thread, NULL, read_ahead, s) == 0;      /* without one: filled when asked for */
    *out = s;
    return OK;
}

void source_free(struct source *s)
{
    if (!s)
        return;
    if (s->running) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    close_all(s);
}

enum status source_next(struct source *s, struct source_block **out, struct error *err)
{
    struct source_block *b = &s->blocks[s->taken % BLOCKS];
    if (s->running) {
        pthread_mutex_lock(&s->lock);
        while (s->filled == s->taken)
            pthread_cond_wait(&s->changed, &s->lock);
        s->taken++;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    } else {
        fill(s, b);
        s->taken++;
    }
    *out = b;
    return b->status == OK ? OK : error_set(err, b->status, "%s", s->err.text);
}

size_t source_headroom(const struct source *s) { return s->headroom; }
const char *source_problem(const struct source *s) { return s->problem[0] ? s->problem : NULL; }
