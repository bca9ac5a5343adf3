/* What the files of this room share: the source of bytes, the reader with its tables, and the fields of an event. */
#ifndef HONE_IMPORT_IMPORT_INT_H
#define HONE_IMPORT_IMPORT_INT_H

#include <stdio.h>

#include "import/import.h"
#include "import/scan.h"

enum {
    IMPORT_BLOCK = 1 << 20,             /* bytes of text that are read at a time */
    IMPORT_LONGEST = 8 << 20,           /* of an event; longer ones are skipped */
    IMPORT_LONGEST_NAME = 16 << 10,     /* longer texts are shortened */
    IMPORT_LONGEST_STACK = 4 << 10,
    IMPORT_LONGEST_ARG = 1 << 10,
};

/* ---- source.c: the bytes, decompressed, in blocks ---- */

struct source_from {
    int fd;                             /* read unless data is given; stays with the caller */
    const void *data;
    size_t size;
    int64_t total;                      /* bytes of the file; -1: unknown */
    size_t block;                       /* bytes per block */
    bool threaded;                      /* reads ahead on a thread of its own */
};

/* source_headroom() bytes ahead of data may be written to: what was left of the block before goes there. */
struct source_block {
    char *memory, *data;                /* SCAN_PAD zeros follow the size bytes of data */
    size_t size;
    enum status status;
    bool last;
    int64_t file_bytes;                 /* taken from the file so far */
};

struct source;
enum status source_new(struct source **out, const struct source_from *from, const char *name, struct error *err);
void source_free(struct source *s);
/* The next block. It and the one before are good until the one after it is asked for. Not to be called after the last. */
enum status source_next(struct source *s, struct source_block **out, struct error *err);
size_t source_headroom(const struct source *s);
/* After the last block: what was wrong with a compressed file, or NULL. */
const char *source_problem(const struct source *s);

/* ---- number.c: numbers as text, written as numbers or as strings ---- */

/* Microseconds as nanoseconds; decimals beyond are cut, values beyond the range clamp. False for what is no number. */
bool number_ns(const struct span *s, int64_t *ns);
bool number_ns_fits(int64_t ns);                                /* false: clamped, or at the end of the range */
bool number_int(const struct span *s, int64_t *value);          /* decimals are cut; also 0x12 */
bool number_real(const struct span *s, double *value);
int32_t number_int32(const struct span *s, int32_t otherwise);  /* clamps */
int number_triple(const struct span *array, int32_t values[3]); /* how many there were, at most 3 */

/* ---- texts.c: names, kept once ---- */

struct slot { uint32_t hash; int32_t index; };  /* index + 1; 0: free */
struct table { struct slot *slots; uint32_t cap, n; };

typedef bool table_same(const void *context, int32_t index);

void table_grow(struct table *t);

/* The slot with what is the same, or the free one where it belongs; the caller fills it and counts n. */
static inline struct slot *table_find(struct table *t, uint32_t hash, table_same *same, const void *context)
{
    if (2 * t->n >= t->cap)
        table_grow(t);
    for (uint32_t at = hash & (t->cap - 1);; at = (at + 1) & (t->cap - 1)) {
        struct slot *s = &t->slots[at];
        if (!s->index || (s->hash == hash && same(context, s->index - 1)))
            return s;
    }
}

struct texts {
    struct trace *trace;
    struct table table;
    uint32_t *sizes;                    /* (names) */
    int32_t cap_sizes;
    int64_t bytes;                      /* kept */
    int32_t other;                      /* name "(other)"; -1: not needed so far */
    char scratch[IMPORT_LONGEST_NAME + 8];
};

void texts_release(struct texts *x);
/* The name of a text without its escapes and NULs, shortened to `longest` bytes. A new text is refused, and is
 * "(other)", when more than 1/16 of read_bytes and 32 MB are kept. */
int32_t texts_name(struct texts *x, const struct span *s, size_t longest, int64_t read_bytes);
int32_t texts_literal(struct texts *x, const char *text);

/* ---- category.c ---- */

enum category { CATEGORY_UNKNOWN = -1, CATEGORY_DROPPED = -2, CATEGORY_FLOW = -3 };     /* otherwise an event_kind */

enum { CATEGORIES = 32 };

struct known_category { char text[28]; uint32_t size; int kind; };      /* size 0: none */
struct categories { struct known_category known[CATEGORIES]; };

int category_kind(struct categories *c, const struct span *s);

/* ---- event.c: one event as spans ---- */

enum field {
    FIELD_PH, FIELD_CAT, FIELD_NAME, FIELD_PID, FIELD_TID, FIELD_TS, FIELD_DUR,
    FIELD_CORRELATION, FIELD_SEQUENCE, FIELD_DEVICE, FIELD_STREAM,
    FIELD_DIMS, FIELD_TYPES, FIELD_VALUES, FIELD_STACK, FIELD_MODULES, FIELD_GRID, FIELD_BLOCK, FIELD_REGISTERS,
    FIELD_SHARED, FIELD_OCCUPANCY, FIELD_BYTES, FIELD_COLLECTIVE, FIELD_ELEMENTS, FIELD_GROUP_SIZE, FIELD_DTYPE,
    FIELD_LABEL, FIELD_DEVICE_TYPE, FIELD_DEVICE_ID, FIELD_CHANGE, FIELD_ALLOCATED, FIELD_RESERVED,
    N_FIELDS,
};

struct raw_event {
    uint64_t seen;                      /* bit per field */
    struct span field[N_FIELDS];        /* those seen */
};

static inline const struct span *raw_field(const struct raw_event *e, enum field f)
{
    static const struct span none = {"", 0, SPAN_NONE, false};
    return e->seen >> f & 1 ? &e->field[f] : &none;
}

/* s->p is behind the brace that opens. Events that are of no use (flows) come back with their ph only. */
enum scan_result event_scan(struct scan *s, struct raw_event *e, bool need_flows);

/* ---- tracks.c ---- */

struct label { int64_t pid, tid; int32_t name, order; bool process; };

struct tracks {
    struct trace *trace;
    struct table table;
    int cap;
    struct label *labels;               /* from metadata, which may come before or after the events */
    int n_labels, cap_labels;
    bool full;                          /* some tracks share the last */
};

void tracks_release(struct tracks *k);
int64_t tracks_id(const struct span *s);        /* of a pid, tid, device or stream; texts get a number of their own */
int16_t tracks_find(struct tracks *k, enum track_kind kind, int64_t pid, int64_t tid);
void tracks_label(struct tracks *k, bool process, int64_t pid, int64_t tid, int32_t name);
void tracks_finish(struct tracks *k);

/* ---- args.c ---- */

struct args {
    struct trace *trace;
    struct table table;
    int32_t cap;
    bool full;
};

void args_release(struct args *a);
int32_t args_index(struct args *a, struct texts *x, const struct raw_event *e, int64_t read_bytes);

/* ---- keep.c: from spans to the trace ---- */

struct keeper {
    struct trace *trace;
    struct texts texts;
    struct tracks tracks;
    struct args args;
    struct categories categories;
    int64_t read_bytes;                 /* of text, so far */
    int64_t beyond;                     /* events refused, as their time or length is beyond what can be */
};

void keeper_init(struct keeper *k, struct trace *t);
void keeper_release(struct keeper *k);
bool keep_event(struct keeper *k, const struct raw_event *e);   /* false: malformed */
void keep_finish(struct keeper *k);

/* ---- memory.c: "[memory]" instants become counters ---- */

void memory_keep(struct keeper *k, const struct raw_event *e, int64_t at_ns, int16_t track);
void memory_finish(struct trace *t);    /* running sums, in order of time */
struct event *keep_slot(struct trace *t);       /* room for one more event */

/* ---- metadata.c ---- */

void metadata_devices(struct keeper *k, const struct span *value);
void metadata_distributed(struct keeper *k, const struct span *value);
int metadata_number(const char *path, const char *word);       /* behind the word in the file's name; -1: none */
int metadata_rank(const char *path);    /* from "...rank3..." in the file's name; -1: none */

/* ---- kineto.c ---- */

enum status kineto_read(struct trace **out, const char *name, const struct source_from *from, import_progress *progress,
                        void *context, struct error *err);

#endif
