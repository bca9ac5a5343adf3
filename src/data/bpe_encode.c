/* Encoding: specials are found first, in two turns as Hugging Face has them; what is between them is cut into pieces, and the bytes or characters of a piece are merged, the earliest
 * merge first and of equal ones the leftmost. Pieces that were met before are remembered. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/arena.h"
#include "data/bpe_int.h"
#include "data/utf8.h"

enum { REMEMBERED = 1 << 15, PIECE_MOST = 30, IDS_MOST = 10 };

/* A short piece and its ids. */
struct memory {
    uint64_t hash;
    uint8_t length, n;          /* length 0: free */
    char bytes[PIECE_MOST];
    int32_t ids[IDS_MOST];
};

/* A token of a piece that is being merged: what was merged into its neighbour has id -1. */
struct symbol {
    int32_t id, before, next;   /* places of the neighbours; -1: none */
};

/* Two neighbours that can be merged, as they were when it was found. */
struct chance {
    int32_t rank, at, left, right;
};

struct bpe_coder {
    const struct bpe *b;
    struct memory *memory;      /* (REMEMBERED) */
    struct symbol *symbols;
    struct chance *heap;        /* the earliest merge first */
    size_t room, n_heap;
    char *spaced;               /* a text with a space before it */
    size_t spaced_room;
};

struct bpe_coder *bpe_coder_new(const struct bpe *b)
{
    struct bpe_coder *c = xcalloc(1, sizeof *c);
    c->b = b;
    c->memory = xcalloc(REMEMBERED, sizeof *c->memory);
    return c;
}

void bpe_coder_free(struct bpe_coder *c)
{
    if (!c)
        return;
    free(c->memory);
    free(c->symbols);
    free(c->heap);
    free(c->spaced);
    free(c);
}

static void put(struct id_list *l, int32_t id)
{
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        l->ids = xrealloc(l->ids, l->room * sizeof *l->ids);
    }
    l->ids[l->n++] = id;
}

/* ---- the heap ---- */

static bool comes_first(const struct chance *a, const struct chance *b) { return a->rank != b->rank ? a->rank < b->rank : a->at < b->at; }

static void heap_push(struct bpe_coder *c, struct chance x)
{
    size_t i = c->n_heap++;
    for (; i > 0 && comes_first(&x, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
        c->heap[i] = c->heap[(i - 1) / 2];
    c->heap[i] = x;
}

static struct chance heap_pop(struct bpe_coder *c)
{
    const struct chance first = c->heap[0], x = c->heap[--c->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < c->n_heap; i = child) {
        if (child + 1 < c->n_heap && comes_first(&c->heap[child + 1], &c->heap[child]))
            child++;
        if (!comes_first(&c->heap[child], &x))
            break;
        c->heap[i] = c->heap[child];
    }
    c->heap[i] = x;
    return first;
}

/* ---- merging ---- */

/* Can the token at `at` be merged with the one behind it? */
static void consider(struct bpe_coder *c, int32_t at)
{
    const struct symbol *s = &c->symbols[at];
    if (at < 0 || s->next < 0)
        return;
    const struct bpe_merge *m = bpe_merge_of(c->b, s->id, c->symbols[s->next].id);
    if (m)
        heap_push(c, (struct chance){m->rank, at, m->left, m->right});
}

static void merge(struct bpe_coder *c, struct chance x)
{
    struct symbol *s = &c->symbols[x.at];
    if (s->id != x.left || s->next < 0 || c->symbols[s->next].id != x.right)
        return;                             /* one of the two is gone by now */
    struct symbol *gone = &c->symbols[s->next];
    s->id = bpe_merge_of(c->b, x.left, x.right)->to;
    s->next = gone->next;
    if (gone->next >= 0)
        c->symbols[gone->next].before = x.at;
    gone->id = -1;
    if (s->before >= 0)
        consider(c, s->before);
    consider(c, x.at);
}

/* A merge takes one token away and finds two chances at most. */
static void make_room(struct bpe_coder *c, size_t length)
{
    if (c->room >= length)
        return;
    c->room = length < 256 ? 256 : 2 * length;
    c->symbols = xrealloc(c->symbols, c->room * sizeof *c->symbols);
    c->heap = xrealloc(c->heap, 3 * c->room * sizeof *c->heap);
}

/* Symbols from `n` on; returns how many there are then. */
static size_t put_symbol(struct bpe_coder *c, size_t n, int32_t id)
{
    c->symbols[n] = (struct symbol){id, (int32_t)n - 1, (int32_t)n + 1};
    return n + 1;
}

static size_t put_bytes(struct bpe_coder *c, size_t n, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        n = put_symbol(c, n, c->b->byte_ids[(unsigned char)bytes[i]]);
    return n;
}

static size_t put_characters(struct bpe_coder *c, const char *piece, size_t length)
{
    size_t n = 0;
    for (size_t at = 0, step; at < length; at += step) {
        uint32_t unused;
        const size_t whole = utf8_decode(piece + at, length - at, &unused);
        const int32_t id = whole ? bpe_find(c->b, piece + at, whole) : -1;
        step = whole ? whole : 1;
        n = id >= 0 ? put_symbol(c, n, id) : put_bytes(c, n, piece + at, step);
    }
    return n;
}

static void merge_piece(struct bpe_coder *c, const char *piece, size_t length, struct id_list *out)
{
    make_room(c, length);
    c->n_heap = 0;
    const size_t n = c->b->by_characters ? put_characters(c, piece, length) : put_bytes(c, 0, piece, length);
    c->symbols[n - 1].next = -1;
    for (size_t i = 0; i < n; i++)
        consider(c, (int32_t)i);
    while (c->n_heap)
        merge(c, heap_pop(c));
    for (int32_t i = 0; i >= 0; i = c->symbols[i].next)
        put(out, c->symbols[i].id);
}

/* ---- pieces ---- */

static void encode_new(struct bpe_coder *c, const char *piece, size_t length, struct id_list *out)
{
    const int32_t whole = c->b->whole_pieces ? bpe_find(c->b, piece, length) : -1;
    if (whole >= 0)
        put(out, whole);
    else
        merge_piece(c, piece, length, out);
}

static void remember(struct memory *m, uint64_t hash, const char *piece, size_t length, const int32_t *ids, size_t n)
{
    if (n > IDS_MOST)
        return;
    m->hash = hash;
    m->length = (uint8_t)length;
    m->n = (uint8_t)n;
    memcpy(m->bytes, piece, length);
    memcpy(m->ids, ids, n * sizeof *ids);
}

static void encode_piece(struct bpe_coder *c, const char *piece, size_t length, struct id_list *out)
{
    if (length > PIECE_MOST) {
        encode_new(c, piece, length, out);
        return;
    }
    const uint64_t hash = XXH3_64bits(piece, length);
    struct memory *m = &c->memory[hash % REMEMBERED];
    if (m->length == length && m->hash == hash && !memcmp(m->bytes, piece, length)) {
        for (int i = 0; i < m->n; i++)
            put(out, m->ids[i]);
        return;
    }
    const size_t first = out->n;
    encode_new(c, piece, length, out);
    remember(m, hash, piece, length, out->ids + first, out->n - first);
}

static void encode_pieces(struct bpe_coder *c, const char *text, size_t length, struct id_list *out)
{
    size_t digit = 0;
    for (size_t at = 0, end; at < length; at = end) {
        end = piece_end(&c->b->cutting, text, at, length, &digit);
        encode_piece(c, text + at, end - at, out);
    }
}

/* ---- spaces ---- */

static const char *find_mark(const struct bpe *b, const char *text, size_t length)
{
    return b->by_characters ? memmem(text, length, SPACE_MARK, SPACE_MARK_BYTES) : NULL;
}

/* `begins`: the text or what is left of it behind a special; `first`: the text. */
static bool wants_space(const struct bpe *b, const char *text, size_t length, bool begins, bool first)
{
    const bool has_one = text[0] == ' ' || find_mark(b, text, length < SPACE_MARK_BYTES ? length : SPACE_MARK_BYTES);
    return b->prefix == PREFIX_EACH_ANYWAY ? begins : b->prefix == PREFIX_EACH ? begins && !has_one : b->prefix == PREFIX_FIRST && first && !has_one;
}

/* The text with a space before it, and spaces where it has their marks; returns its length. */
static size_t respace(struct bpe_coder *c, const char *text, size_t length, bool before)
{
    if (c->spaced_room < length + 1) {
        c->spaced_room = length + 1;
        c->spaced = xrealloc(c->spaced, c->spaced_room);
    }
    size_t n = 0;
    if (before)
        c->spaced[n++] = ' ';
    for (const char *mark; (mark = find_mark(c->b, text, length));) {
        const size_t plain = (size_t)(mark - text);
        memcpy(c->spaced + n, text, plain);
        n += plain;
        c->spaced[n++] = ' ';
        text += plain + SPACE_MARK_BYTES;
        length -= plain + SPACE_MARK_BYTES;
    }
    memcpy(c->spaced + n, text, length);
    return n + length;
}

/* What is between specials. */
static void encode_plain(struct bpe_coder *c, const char *text, size_t length, bool begins, bool first, struct id_list *out)
{
    if (!length)
        return;
    const bool before = wants_space(c->b, text, length, begins, first);
    if (before || find_mark(c->b, text, length)) {
        length = respace(c, text, length, before);
        text = c->spaced;
    }
    encode_pieces(c, text, length, out);
}

/* ---- specials ---- */

/* The longest special of a turn that begins here; NULL: none. */
static const struct bpe_special *special_at(const struct bpe *b, int turn, const char *text, size_t length)
{
    if (!b->special_starts[turn][(unsigned char)*text])
        return NULL;
    for (int i = 0; i < b->n_specials; i++) {
        const struct bpe_special *s = &b->specials[i];
        if (s->turn == turn && s->length <= length && !memcmp(s->text, text, s->length))
            return s;
    }
    return NULL;
}

/* Where in the whole text something stands: where it begins, behind a special, or neither. See wants_space. */
struct place {
    bool begins, first;
};

/* What the specials of one turn leave is for the next turn, and in the end for merges. */
static void encode_turn(struct bpe_coder *c, int turn, const char *text, size_t length, struct place *p, struct id_list *out)
{
    size_t plain = 0;
    if (turn == SPECIAL_TURNS) {
        encode_plain(c, text, length, p->begins, p->first, out);
        return;
    }
    for (size_t at = 0; at < length && c->b->n_specials;) {
        const struct bpe_special *s = special_at(c->b, turn, text + at, length - at);
        if (!s) {
            at++;
            continue;
        }
        encode_turn(c, turn + 1, text + plain, at - plain, p, out);
        put(out, s->id);
        *p = (struct place){.begins = true};
        plain = at += s->length;
    }
    encode_turn(c, turn + 1, text + plain, length - plain, p, out);
}

void bpe_encode(struct bpe_coder *c, const char *text, size_t length, bool begins, struct id_list *out)
{
    encode_turn(c, 0, text, length, &(struct place){.begins = begins, .first = begins}, out);
}
