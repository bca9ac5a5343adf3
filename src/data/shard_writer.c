/* Shards of tokens on their way to disk; see shard_writer.h. */
#include "data/shard_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/fresh.h"

enum { HEADER_NUMBERS = 256, PATH_ROOM = FRESH_PATH_MAX + 16, CHUNK = 4096 };

struct shard_writer {
    char folder[PATH_ROOM], path[PATH_ROOM + 64];       /* path: of the shard that is open */
    FILE *file;                         /* NULL: none is */
    int width, shards;
    int64_t shard_tokens, in_shard, tokens;
};

struct shard_writer *shard_writer_new(const char *folder, int64_t vocab, int64_t shard_tokens)
{
    struct shard_writer *w = xcalloc(1, sizeof *w);
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    w->width = vocab <= 1 << 16 ? 2 : 4;
    w->shard_tokens = shard_tokens;
    return w;
}

static enum status put_header(struct shard_writer *w, struct error *err)
{
    int32_t head[HEADER_NUMBERS] = {w->width == 2 ? 20240520 : 20240801, w->width == 2 ? 1 : 7, (int32_t)w->in_shard};
    return fwrite(head, sizeof head, 1, w->file) == 1 ? OK : error_errno(err, "cannot write '%s'", w->path);
}

static enum status begin(struct shard_writer *w, struct error *err)
{
    snprintf(w->path, sizeof w->path, "%s/tokens-%06d.bin", w->folder, w->shards);
    w->in_shard = 0;
    w->file = fopen(w->path, "wbe");
    return w->file ? put_header(w, err) : error_errno(err, "cannot make '%s'", w->path);
}

/* The count of tokens is known now. */
static enum status end(struct shard_writer *w, struct error *err)
{
    enum status st = fseek(w->file, 0, SEEK_SET) ? error_errno(err, "cannot write '%s'", w->path) : put_header(w, err);
    if (st == OK && (fflush(w->file) || fsync(fileno(w->file))))
        st = error_errno(err, "cannot write '%s'", w->path);
    if (fclose(w->file) && st == OK)
        st = error_errno(err, "cannot write '%s'", w->path);
    w->file = NULL;
    w->shards += st == OK;
    return st;
}

static enum status put_chunk(struct shard_writer *w, const int32_t *ids, size_t n, struct error *err)
{
    uint16_t narrow[CHUNK];
    for (size_t i = 0; w->width == 2 && i < n; i++)
        narrow[i] = (uint16_t)ids[i];
    if (fwrite(w->width == 2 ? (const void *)narrow : ids, (size_t)w->width, n, w->file) != n)
        return error_errno(err, "cannot write '%s'", w->path);
    w->in_shard += (int64_t)n;
    w->tokens += (int64_t)n;
    return OK;
}

enum status shard_writer_put(struct shard_writer *w, const int32_t *ids, size_t n, struct error *err)
{
    enum status st = OK;
    while (n && st == OK) {
        if (!w->file)
            st = begin(w, err);
        size_t take = n < CHUNK ? n : CHUNK;
        if ((int64_t)take > w->shard_tokens - w->in_shard)
            take = (size_t)(w->shard_tokens - w->in_shard);
        if (st == OK)
            st = put_chunk(w, ids, take, err);
        ids += take;
        n -= take;
        if (st == OK && w->in_shard == w->shard_tokens)
            st = end(w, err);
    }
    return st;
}

enum status shard_writer_finish(struct shard_writer *w, struct error *err)
{
    return w->file ? end(w, err) : OK;
}

int64_t shard_writer_tokens(const struct shard_writer *w) { return w->tokens; }
int shard_writer_count(const struct shard_writer *w) { return w->shards; }
int shard_writer_width(const struct shard_writer *w) { return w->width; }

void shard_writer_free(struct shard_writer *w)
{
    if (w && w->file)
        fclose(w->file);
    free(w);
}
