/* Writes shards of tokens in the form of llm.c (shard.c), which data.source: bin reads. */
#ifndef HONE_DATA_SHARD_WRITER_H
#define HONE_DATA_SHARD_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct shard_writer;

/* Into a folder whose files are named once all are whole (core/fresh.h). Ids are below `vocab`; a shard has `shard_tokens` but for the last. */
struct shard_writer *shard_writer_new(const char *folder, int64_t vocab, int64_t shard_tokens);
enum status shard_writer_put(struct shard_writer *w, const int32_t *ids, size_t n, struct error *err);
/* Ends the last shard. */
enum status shard_writer_finish(struct shard_writer *w, struct error *err);
int64_t shard_writer_tokens(const struct shard_writer *w);
int shard_writer_count(const struct shard_writer *w);
int shard_writer_width(const struct shard_writer *w);           /* bytes of a token */
void shard_writer_free(struct shard_writer *w);

#endif
