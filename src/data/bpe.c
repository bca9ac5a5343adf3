/* Tables of byte-pair encoding: tokens by their bytes, merges by their pair, bytes as characters that can be shown. See bpe.h. */
#include "data/bpe.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/arena.h"
#include "data/bpe_int.h"
#include "data/utf8.h"

struct bpe *bpe_share(struct bpe *b)
{
    atomic_fetch_add(&b->users, 1);
    return b;
}

void bpe_free(struct bpe *b)
{
    if (!b || atomic_fetch_sub(&b->users, 1) > 1)
        return;
    free(b->json);
    free(b->tokens);
    free(b->text);
    free(b->by_text);
    free(b->merges);
    free(b->specials);
    free(b);
}

int32_t bpe_size(const struct bpe *b) { return b->n; }

const char *bpe_token(const struct bpe *b, int32_t id, size_t *length)
{
    if (id < 0 || id >= b->n || !b->tokens[id].at)
        return NULL;
    *length = b->tokens[id].length;
    return b->tokens[id].at;
}

int32_t bpe_special(const struct bpe *b, const char *text)
{
    for (int i = 0; i < b->n_specials; i++)
        if (strlen(text) == b->specials[i].length && !memcmp(text, b->specials[i].text, b->specials[i].length))
            return b->specials[i].id;
    return -1;
}

bool bpe_is_mark(const struct bpe *b, int32_t id)
{
    for (int i = 0; i < b->n_specials; i++)
        if (b->specials[i].id == id)
            return b->specials[i].is_mark;
    return false;
}

const char *bpe_json(const struct bpe *b, size_t *size)
{
    *size = b->json_size;
    return b->json;
}

void id_list_release(struct id_list *l)
{
    free(l->ids);
    *l = (struct id_list){0};
}

/* ---- tables: at most half full ---- */

static uint32_t slots_for(size_t n)
{
    uint32_t slots = 16;
    while (slots < 2 * n)
        slots *= 2;
    return slots;
}

static bool is_byte(const struct bpe *b, int32_t id)
{
    return b->by_characters && b->tokens[id].length == 1 && b->byte_ids[(unsigned char)*b->tokens[id].at] == id;
}

void bpe_index_tokens(struct bpe *b)
{
    const uint32_t slots = slots_for((size_t)b->n);
    b->by_text = xcalloc(slots, sizeof *b->by_text);
    b->by_text_mask = slots - 1;
    memset(b->by_text, -1, slots * sizeof *b->by_text);
    for (int32_t id = 0; id < b->n; id++) {
        const struct bpe_bytes *t = &b->tokens[id];
        if (!t->at || is_byte(b, id) || bpe_find(b, t->at, t->length) >= 0)
            continue;
        uint32_t at = (uint32_t)XXH3_64bits(t->at, t->length) & b->by_text_mask;
        while (b->by_text[at] >= 0)
            at = (at + 1) & b->by_text_mask;
        b->by_text[at] = id;
    }
}

int32_t bpe_find(const struct bpe *b, const char *text, size_t length)
{
    for (uint32_t at = (uint32_t)XXH3_64bits(text, length) & b->by_text_mask; b->by_text[at] >= 0; at = (at + 1) & b->by_text_mask) {
        const struct bpe_bytes *t = &b->tokens[b->by_text[at]];
        if (t->length == length && !memcmp(t->at, text, length))
            return b->by_text[at];
    }
    return -1;
}

static uint32_t pair_slot(const struct bpe *b, int32_t left, int32_t right)
{
    const uint64_t mixed = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(mixed >> 32) & b->merges_mask;
}

void bpe_room_for_merges(struct bpe *b, size_t n)
{
    const uint32_t slots = slots_for(n);
    b->merges = xcalloc(slots, sizeof *b->merges);
    b->merges_mask = slots - 1;
    for (uint32_t i = 0; i < slots; i++)
        b->merges[i].left = -1;
}

const struct bpe_merge *bpe_merge_of(const struct bpe *b, int32_t left, int32_t right)
{
    for (uint32_t at = pair_slot(b, left, right); b->merges[at].left >= 0; at = (at + 1) & b->merges_mask)
        if (b->merges[at].left == left && b->merges[at].right == right)
            return &b->merges[at];
    return NULL;
}

bool bpe_merge_add(struct bpe *b, struct bpe_merge m)
{
    uint32_t at = pair_slot(b, m.left, m.right);
    if (bpe_merge_of(b, m.left, m.right))
        return false;
    while (b->merges[at].left >= 0)
        at = (at + 1) & b->merges_mask;
    b->merges[at] = m;
    b->n_merges++;
    return true;
}

/* ---- bytes as characters ---- */

/* Bytes that have a character of their own in Latin-1 are shown by it; the others, 0 to 32, 127 to 160 and 173, by those from U+0100 on. */
static bool shows_itself(uint32_t c) { return (c >= '!' && c <= '~') || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF); }

uint32_t bpe_shown_of(unsigned char byte)
{
    if (shows_itself(byte))
        return byte;
    return 0x100 + (byte <= ' ' ? (uint32_t)byte : byte <= 0xA0 ? 33 + (uint32_t)byte - 127 : 67);
}

int bpe_byte_of(uint32_t shown)
{
    if (shown < 0x100)
        return shows_itself(shown) ? (int)shown : -1;
    const int other = (int)shown - 0x100;
    return other < 33 ? other : other < 67 ? 127 + other - 33 : other == 67 ? 0xAD : -1;
}

size_t bpe_show(const char *bytes, size_t length, char *out)
{
    size_t used = 0;
    char one[5];
    for (size_t i = 0; i < length; i++) {
        const size_t n = utf8_encode(bpe_shown_of((unsigned char)bytes[i]), one);
        memcpy(out + used, one, n);
        used += n;
    }
    out[used] = '\0';
    return used;
}
