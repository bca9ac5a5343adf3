/* Samples that are one line of text each: the line without its newline goes in, its newline is the last target. What is
 * longer than seq is cut; what is shorter is padded with token 0 and target -1. Empty lines are left out, and a last
 * line without a newline has no target for its last character. */
#include <stdlib.h>

#include "data/data_int.h"

enum { CHUNK_TOKENS = 2048 };

int64_t lines_start(const struct store *s, int64_t at, int32_t newline)
{
    for (int32_t id; at > 0; at--)
        if (store_read(s, at - 1, 1, &id, NULL) == OK && id == newline)
            break;
    return at;
}

/* Of a line with so many tokens, its newline among them, seq are inputs and the one behind is a target; the rest is lost. */
static void count_line(struct line_counts *n, int64_t tokens, int64_t seq)
{
    const int64_t lost = tokens > seq + 1 ? tokens - (seq + 1) : 0;
    n->lines++;
    n->cut += lost > 0;
    n->cut_tokens += lost;
}

/* Walks over the lines of a range: counts them and, if starts is not NULL, writes where each begins. */
static enum status walk(const struct range *r, int32_t newline, int64_t seq, int64_t *starts, struct line_counts *n, struct error *err)
{
    int32_t ids[CHUNK_TOKENS];
    const int64_t end = r->first + r->count;
    int64_t start = r->first;
    *n = (struct line_counts){0};
    for (int64_t at = r->first; at < end; at += CHUNK_TOKENS) {
        const int64_t take = end - at < CHUNK_TOKENS ? end - at : CHUNK_TOKENS;
        const enum status st = store_read(r->store, at, take, ids, err);
        if (st != OK)
            return st;
        for (int64_t i = 0; i < take; i++) {
            const bool ends = ids[i] == newline;
            const int64_t length = at + i - start;      /* of the line before this token */
            if ((ends && length == 0) || (!ends && (at + i + 1 < end || length == 0))) {
                start += ends;
                continue;
            }
            if (starts)
                starts[n->lines] = start;
            count_line(n, length + 1, seq);
            start = at + i + 1;
        }
    }
    return OK;
}

enum status lines_index(struct part *p, int32_t newline, int64_t seq, struct error *err)
{
    if (p->n_ranges == 0)
        return OK;
    const enum status st = walk(&p->ranges[0], newline, seq, NULL, &p->counts, err);
    p->samples = p->counts.lines;
    const size_t bytes = sizeof *p->lines * (size_t)p->samples;
    p->lines = malloc(bytes ? bytes : 1);
    if (!p->lines)
        return error_no_memory(err, "the index of lines", bytes);
    return st == OK ? walk(&p->ranges[0], newline, seq, p->lines, &p->counts, err) : st;
}

enum status lines_sample(const struct dataset *d, enum split split, int64_t i, int32_t *tokens, int32_t *targets,
                         struct error *err)
{
    const struct range *r = &d->parts[split].ranges[0];
    const int64_t start = d->parts[split].lines[i], left = r->first + r->count - start;
    const int64_t n = left < d->seq ? left : d->seq;
    int32_t next = -1;                  /* what follows the tokens that are read */
    int64_t length = 0;
    enum status st = store_read(r->store, start, n, tokens, err);
    if (st == OK && left > n)
        st = store_read(r->store, start + n, 1, &next, err);
    for (; length < n && tokens[length] != d->newline; length++)
        targets[length] = length + 1 < n ? tokens[length + 1] : next;
    for (int64_t k = length; k < d->seq; k++) {
        tokens[k] = 0;
        targets[k] = -1;
    }
    return st;
}

int64_t lines_length(const struct dataset *d, int64_t i)
{
    const struct part *p = &d->parts[SPLIT_TRAIN];
    const struct range *r = &p->ranges[0];
    const int64_t end = i + 1 < p->samples ? p->lines[i + 1] - 1 : r->first + r->count, length = end - p->lines[i];
    return length < d->seq ? length : d->seq;
}
