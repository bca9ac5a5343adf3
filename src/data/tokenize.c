/* hone tokenize and hone tokenizer train; see tokenize.h. */
#include "data/tokenize.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/fresh.h"
#include "core/fs.h"
#include "core/system.h"
#include "data/files.h"
#include "data/shard_writer.h"

enum { BLOCK_BYTES = 32 << 20 };

/* What is done with text, block by block of a file. */
struct consumer {
    void *context;
    /* How much of it can be taken before more is known; 0: nothing. */
    size_t (*cut)(void *context, const char *text, size_t length);
    enum status (*take)(void *context, const char *text, size_t length, bool begins, struct error *err);
    enum status (*end_file)(void *context, struct error *err);     /* may be NULL */
    const volatile sig_atomic_t *stop;
    tokenize_progress_fn *progress;
    void *progress_context;
    int64_t files, bytes, before, total;
    bool stopped;
};

/* ---- reading ---- */

struct block {
    char *bytes;
    size_t n, room;
};

static enum status fill(struct block *b, struct text_input *in, bool *ended, struct error *err)
{
    size_t n = 1;
    enum status st = OK;
    if (b->n == b->room) {
        const size_t room = b->room ? 2 * b->room : BLOCK_BYTES;
        char *bytes = realloc(b->bytes, room);
        if (!bytes)
            return error_no_memory(err, "a block of text", room);
        b->bytes = bytes;
        b->room = room;
    }
    while (st == OK && n && b->n < b->room) {
        st = text_input_read(in, b->bytes + b->n, b->room - b->n, &n, err);
        b->n += st == OK ? n : 0;
    }
    *ended = n == 0;
    return st;
}

static void tell(struct consumer *c, const struct text_input *in)
{
    if (c->progress)
        c->progress(c->progress_context, c->before + (int64_t)text_input_at(in), c->total);
    c->stopped |= c->stop && *c->stop;
}

static enum status consume_input(struct consumer *c, struct text_input *in, struct block *b, struct error *err)
{
    bool begins = true, ended = false;
    enum status st = OK;
    b->n = 0;
    while (st == OK && !ended && !c->stopped) {
        st = fill(b, in, &ended, err);
        const size_t take = st != OK ? 0 : ended ? b->n : c->cut(c->context, b->bytes, b->n);
        if (take) {
            st = c->take(c->context, b->bytes, take, begins, err);
            memmove(b->bytes, b->bytes + take, b->n - take);
            b->n -= take;
            c->bytes += (int64_t)take;
            begins = false;
        }
        tell(c, in);
    }
    c->before += (int64_t)text_input_size(in);
    return st == OK && c->end_file && !c->stopped ? c->end_file(c->context, err) : st;
}

static enum status consume_list(struct consumer *c, const struct file_list *l, struct block *b, struct error *err)
{
    enum status st = OK;
    for (int i = 0; i < l->n && st == OK && !c->stopped; i++) {
        struct text_input *in;
        st = text_input_open(&in, l->paths[i], err);
        if (st != OK)
            return st;
        st = consume_input(c, in, b, err);
        c->files++;
        text_input_free(in);
    }
    return st;
}

/* Sizes first, so that a bar knows its end. */
static enum status measure(struct consumer *c, const struct file_list *l, struct error *err)
{
    for (int i = 0; i < l->n; i++) {
        struct text_input *in;
        const enum status st = text_input_open(&in, l->paths[i], err);
        if (st != OK)
            return st;
        c->total += (int64_t)text_input_size(in);
        text_input_free(in);
    }
    return OK;
}

static enum status consume(struct consumer *c, const char *const *texts, int n, struct error *err)
{
    struct file_list *lists = xcalloc((size_t)n, sizeof *lists);
    struct block b = {0};
    enum status st = OK;
    for (int i = 0; i < n && st == OK; i++)
        if ((st = file_list_init(&lists[i], texts[i], "text", err)) == OK)
            st = measure(c, &lists[i], err);
    for (int i = 0; i < n && st == OK; i++)
        st = consume_list(c, &lists[i], &b, err);
    if (st == OK && !c->bytes && !c->stopped)
        st = error_set(err, BAD_INPUT, "'%s' is empty; it should hold text", texts[0]);
    for (int i = 0; i < n; i++)
        file_list_release(&lists[i]);
    free(lists);
    free(b.bytes);
    return st;
}

static int threads_of(int asked) { return asked ? asked : system_cores(sched_getaffinity); }

/* ---- shards ---- */

struct tokenizing {
    struct bpe *bpe;
    struct fresh folder;
    struct shard_writer *shards;
    int threads;
    int32_t between;                    /* -1: nothing */
};

static size_t cut_shards(void *context, const char *text, size_t length) { return bpe_cut(((struct tokenizing *)context)->bpe, text, length); }

static enum status take_shards(void *context, const char *text, size_t length, bool begins, struct error *err)
{
    struct tokenizing *t = context;
    struct id_list ids = {0};
    enum status st = bpe_encode_threads(t->bpe, text, length, begins, t->threads, &ids, err);
    if (st == OK)
        st = shard_writer_put(t->shards, ids.ids, ids.n, err);
    id_list_release(&ids);
    return st;
}

static enum status end_shards_file(void *context, struct error *err)
{
    struct tokenizing *t = context;
    return t->between < 0 ? OK : shard_writer_put(t->shards, &t->between, 1, err);
}

static enum status open_tokenizing(struct tokenizing *t, const struct tokenize_options *o, struct error *err)
{
    enum status st = bpe_open(&t->bpe, o->tokenizer, err);
    t->threads = threads_of(o->threads);
    t->between = -1;
    if (st == OK && o->between && (t->between = bpe_special(t->bpe, o->between)) < 0)
        st = error_set(err, BAD_INPUT, "--between is '%.60s', and the tokenizer has no such special token", o->between);
    if (st == OK)
        st = fresh_begin(&t->folder, o->out, err);
    if (st == OK)
        t->shards = shard_writer_new(t->folder.part, bpe_size(t->bpe), o->shard_tokens);
    return st;
}

static enum status write_tokenizer(const struct bpe *b, const char *folder, struct error *err)
{
    char path[FRESH_PATH_MAX + 64];
    size_t size;
    const char *text = bpe_json(b, &size);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    return fs_write_synced(path, text, size, err);
}

enum status tokenize_run(const struct tokenize_options *o, struct tokenize_result *r, struct error *err)
{
    const double start = clock_s();
    struct tokenizing t = {.folder = {.lock = -1}};
    struct consumer c = {.context = &t, .cut = cut_shards, .take = take_shards, .end_file = end_shards_file, .stop = o->stop, .progress = o->progress,
                         .progress_context = o->context};
    enum status st = open_tokenizing(&t, o, err);
    if (st == OK)
        st = consume(&c, o->texts, o->n_texts, err);
    if (st == OK)
        st = shard_writer_finish(t.shards, err);
    if (st == OK)
        st = write_tokenizer(t.bpe, t.folder.part, err);
    if (st == OK)
        st = fresh_publish(&t.folder, err);
    if (st == OK)
        *r = (struct tokenize_result){.files = c.files, .bytes = c.bytes, .tokens = shard_writer_tokens(t.shards), .vocab = bpe_size(t.bpe),
                                      .shards = shard_writer_count(t.shards), .width = shard_writer_width(t.shards), .seconds = clock_s() - start,
                                      .interrupted = c.stopped};
    shard_writer_free(t.shards);
    fresh_end(&t.folder);
    bpe_free(t.bpe);
    return st;
}

/* ---- a new tokenizer ---- */

static size_t cut_trainer(void *context, const char *text, size_t length) { return bpe_trainer_cut(context, text, length); }

static enum status take_trainer(void *context, const char *text, size_t length, bool begins, struct error *err)
{
    (void)begins;
    return bpe_trainer_add(context, text, length, err);
}

/* Before the text is read, which may take an hour: nothing is there of that name, and its folder can be written. */
static enum status check_out(const char *path, struct error *err)
{
    char folder[PATH_MAX];
    bool there;
    const char *slash = strrchr(path, '/');
    const int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (n >= (int)sizeof folder || strlen(path) >= PATH_MAX)
        return error_set(err, BAD_INPUT, "--out has %zu bytes; expected 1 to %d", strlen(path), PATH_MAX - 1);
    const enum status st = fs_there(path, &there, err);
    if (st != OK || there)
        return st != OK ? st : error_set(err, BAD_INPUT, "'%s' is there already; give another --out", path);
    return access(folder, W_OK | X_OK) ? error_errno(err, "cannot write '%s'", path) : OK;
}

enum status tokenizer_train_run(const struct tokenizer_train_options *o, struct tokenizer_train_result *r, struct error *err)
{
    const double start = clock_s();
    struct bpe_trainer *t = bpe_trainer_new(&o->how, threads_of(o->threads));
    struct consumer c = {.context = t, .cut = cut_trainer, .take = take_trainer, .stop = o->stop, .progress = o->progress, .progress_context = o->context};
    struct bpe *b = NULL;
    enum status st = check_out(o->out, err);
    if (st == OK)
        st = consume(&c, o->texts, o->n_texts, err);
    if (st == OK && c.stopped)
        st = error_stopped(err, "stopped before the text was read; nothing was written");
    if (st == OK)
        st = bpe_trainer_finish(t, &b, err);
    if (st == OK) {
        size_t size;
        const char *text = bpe_json(b, &size);
        st = fs_replace(o->out, text, size, err);
        *r = (struct tokenizer_train_result){.files = c.files, .bytes = c.bytes, .vocab = bpe_size(b), .seconds = clock_s() - start};
    }
    bpe_free(b);
    bpe_trainer_free(t);
    return st;
}
