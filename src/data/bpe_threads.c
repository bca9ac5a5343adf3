/* Encoding on threads: the text is cut where words part, so that every part has the ids that it has in the whole. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/team.h"
#include "data/bpe_int.h"

enum { PART_BYTES = 256 << 10 };

static bool specials_hold(const struct bpe *b, char c)
{
    for (int i = 0; i < b->n_specials; i++)
        if (memchr(b->specials[i].text, c, b->specials[i].length))
            return true;
    return false;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* What follows a special may get a space before it, which is known only where the special is seen. */
static bool special_ends(const struct bpe *b, const char *text, size_t at)
{
    for (int i = 0; i < b->n_specials && b->prefix != PREFIX_NEVER; i++)
        if (b->specials[i].length <= at && !memcmp(text + at - b->specials[i].length, b->specials[i].text, b->specials[i].length))
            return true;
    return false;
}

/* Between a letter and a space behind it no piece goes on, whatever came before; nor before the end of a line where that is a piece's end, or
 * behind a letter. */
size_t bpe_cut(const struct bpe *b, const char *text, size_t length)
{
    if (b->cutting.none)
        return 0;
    const bool lines = !specials_hold(b, '\n') && (!b->cutting.spaces_first || b->cutting.lines), blanks = !specials_hold(b, ' ');
    for (size_t at = length; at-- > 1;)
        if (((lines && text[at] == '\n' && (b->cutting.lines || is_letter(text[at - 1]))) || (blanks && text[at] == ' ' && is_letter(text[at - 1]))) &&
            !special_ends(b, text, at))
            return at;
    return 0;
}

struct part {
    size_t first, length;
    struct id_list ids;
};

struct work {
    const struct bpe *b;
    const char *text;
    bool begins;
    struct part *parts;
    int n;
    atomic_int next;
};

static void divide(struct work *w, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t take = 0, most = PART_BYTES;
        while (!take && at + most < length) {
            take = bpe_cut(w->b, w->text + at, most);
            most *= 2;
        }
        take = take ? take : length - at;
        w->parts = xrealloc(w->parts, (size_t)(w->n + 1) * sizeof *w->parts);
        w->parts[w->n++] = (struct part){.first = at, .length = take};
        at += take;
    }
}

static void encode_parts(void *argument, int member)
{
    struct work *w = argument;
    struct bpe_coder *c = bpe_coder_new(w->b);
    (void)member;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
        bpe_encode(c, w->text + w->parts[i].first, w->parts[i].length, w->begins && i == 0, &w->parts[i].ids);
    bpe_coder_free(c);
}

static enum status collect(struct work *w, struct id_list *out, struct error *err)
{
    size_t n = out->n;
    for (int i = 0; i < w->n; i++)
        n += w->parts[i].ids.n;
    int32_t *ids = realloc(out->ids, (n ? n : 1) * sizeof *ids);
    if (!ids)
        return error_no_memory(err, "the tokens of a text", n * sizeof *ids);
    out->ids = ids;
    out->room = n ? n : 1;
    for (int i = 0; i < w->n; i++) {
        if (w->parts[i].ids.n)
            memcpy(out->ids + out->n, w->parts[i].ids.ids, w->parts[i].ids.n * sizeof *ids);
        out->n += w->parts[i].ids.n;
    }
    return OK;
}

enum status bpe_encode_threads(const struct bpe *b, const char *text, size_t length, bool begins, int threads, struct id_list *out, struct error *err)
{
    struct work w = {.b = b, .text = text, .begins = begins};
    struct team *team = NULL;
    divide(&w, length);
    enum status st = team_new(&team, threads < w.n ? threads : w.n ? w.n : 1, err);
    if (st == OK) {
        team_run(team, encode_parts, &w);
        st = collect(&w, out, err);
    }
    team_free(team);
    for (int i = 0; i < w.n; i++)
        id_list_release(&w.parts[i].ids);
    free(w.parts);
    return st;
}
