/* Lines of memory that products of tiles are going to need, asked for while tiles are multiplied: where the result goes, and what is packed next.
 * A core has 16 lines under way. Asked for all at once they hold up the loads of tiles behind them, as they do when packing or storing meets
 * them one after the other; between two instructions of tiles there is room for some. */
#ifndef HONE_OPS_CPU_PAIRS_AHEAD_H
#define HONE_OPS_CPU_PAIRS_AHEAD_H

#include "ops/cpu/pairs/pack.h"

enum { LINE = 64, TWO_LINES = 2 * LINE };

/* Two lines `left` times, `each` times in a row of memory, the next ones at `at`. */
struct lines {
    uintptr_t at;
    int64_t left, each, in_row, jump;
};

static inline struct lines lines_of(const void *first, int64_t rows, int64_t bytes, int64_t stride)
{
    const int64_t each = (bytes + TWO_LINES - 1) / TWO_LINES;
    return (struct lines){(uintptr_t)first, rows * each, each, each, stride - each * TWO_LINES};
}

/* At most n rows from row i on, of `rows` in all. */
static inline struct lines either_lines(struct pairs_either e, int64_t i, int64_t n, int64_t rows, int64_t depth)
{
    const int64_t bytes = e.bf16 ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float), there = least(n, rows - i);
    if (there <= 0)
        return (struct lines){0};
    const void *first = either_at(e, i, 0).from;
    return e.step == 1 ? lines_of(first, there, depth * bytes, e.row * bytes) : lines_of(first, depth, there * bytes, e.step * bytes);
}

/* `write` is a constant in every call, and clang wants to see one. */
PAIRS_INLINE void line_ask(uintptr_t at, const bool write)
{
    if (write)
        __builtin_prefetch((const void *)at, 1);
    else
        __builtin_prefetch((const void *)at, 0);
}

PAIRS_INLINE void lines_ask(struct lines *l, const bool write)
{
    line_ask(l->at, write);
    line_ask(l->at + LINE, write);
    l->left--;
    l->at += TWO_LINES;
    if (--l->in_row == 0) {
        l->at += (uintptr_t)l->jump;
        l->in_row = l->each;
    }
}

/* What a block of products asks for, so many of each between two instructions. */
struct ahead {
    struct lines result, next;
    int64_t result_each, next_each;
};

/* Of what is packed next, over so many places. */
static inline struct ahead ahead_of(struct lines next, int64_t places) { return (struct ahead){.next = next, .next_each = (next.left + places - 1) / places}; }

/* Of the result of the block that comes now. */
static inline void ahead_begin(struct ahead *h, struct lines result, int64_t places)
{
    h->result = result;
    h->result_each = (result.left + places - 1) / places;
}

PAIRS_INLINE void ahead_ask(struct ahead *h)
{
    for (int64_t i = 0; i < h->result_each && h->result.left > 0; i++)
        lines_ask(&h->result, true);
    for (int64_t i = 0; i < h->next_each && h->next.left > 0; i++)
        lines_ask(&h->next, false);
}

#endif
