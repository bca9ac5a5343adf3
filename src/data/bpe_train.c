/* Makes byte pairs from text: pieces are counted, on threads; then, again and again, the most frequent pair of neighbours in them becomes a token.
 * Of equally frequent ones that of the lower ids, so that the result does not depend on order or threads. Pairs whose count rises are put into the heap
 * anew, and those whose count has fallen are found out when they come up. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/arena.h"
#include "core/setup.h"
#include "core/team.h"
#include "data/bpe_int.h"
#include "data/bpe_train.h"

/* ---- counting pieces ---- */

struct word {
    uint32_t text, length;      /* in the arena of its counter, or of the words */
    int64_t count;
};

/* Pieces and how often they came, in a table with open addressing. */
struct counter {
    char *text;
    size_t used, room;
    struct word *words;
    uint32_t *slots;            /* word + 1; 0: free */
    uint32_t n, mask;
};

static void counter_release(struct counter *c)
{
    free(c->text);
    free(c->words);
    free(c->slots);
    *c = (struct counter){0};
}

static uint32_t slot_of(const struct counter *c, const char *piece, size_t length)
{
    uint32_t at = (uint32_t)XXH3_64bits(piece, length) & c->mask;
    for (; c->slots[at]; at = (at + 1) & c->mask) {
        const struct word *w = &c->words[c->slots[at] - 1];
        if (w->length == length && !memcmp(c->text + w->text, piece, length))
            break;
    }
    return at;
}

static void grow(struct counter *c)
{
    const uint32_t slots = c->mask ? 2 * (c->mask + 1) : 1 << 12;
    free(c->slots);
    c->slots = xcalloc(slots, sizeof *c->slots);
    c->mask = slots - 1;
    c->words = xrealloc(c->words, slots / 2 * sizeof *c->words);
    for (uint32_t i = 0; i < c->n; i++)
        c->slots[slot_of(c, c->text + c->words[i].text, c->words[i].length)] = i + 1;
}

/* Pieces beyond 4 GB of different text are left out: there is no room to name them. */
static void count_piece(struct counter *c, const char *piece, size_t length, int64_t times)
{
    if (2 * (c->n + 1) > c->mask)
        grow(c);
    uint32_t at = slot_of(c, piece, length);
    if (!c->slots[at]) {
        if (length > UINT32_MAX - c->used)
            return;
        if (c->used + length > c->room) {
            c->room = 2 * (c->used + length) + 4096;
            c->text = xrealloc(c->text, c->room);
        }
        memcpy(c->text + c->used, piece, length);
        c->words[c->n] = (struct word){(uint32_t)c->used, (uint32_t)length, 0};
        c->used += length;
        c->slots[at] = ++c->n;
    }
    c->words[c->slots[at] - 1].count += times;
}

/* ---- the trainer ---- */

struct symbols {
    int32_t *ids;               /* of a word; merged ones close up */
    uint32_t n;
    int64_t count;
};

/* Words that a pair was seen in; some have lost it since. */
struct pair {
    int32_t left, right;
    int64_t count;
    uint32_t *words;
    uint32_t n, room;
    int32_t risen;              /* in which merge; so that it is listed once */
};

struct chance {
    int64_t count;
    int32_t left, right;
    uint32_t pair;
};

struct bpe_trainer {
    struct bpe_training how;
    struct counter counter;
    int threads;
    struct symbols *words;
    uint32_t n_words;
    struct pair *pairs;
    uint32_t n_pairs, pairs_room, *slots, mask;
    struct chance *heap;
    size_t n_heap, heap_room;
    struct bpe_bytes *tokens;   /* whose bytes are in `texts` */
    struct arena texts;
    struct counter known;       /* tokens but specials, by their bytes */
    uint32_t *risen;            /* pairs whose count has risen in this merge */
    uint32_t n_risen, risen_room;
    int32_t n_tokens, (*merges)[2], n_merges, merges_room;
};

struct bpe_trainer *bpe_trainer_new(const struct bpe_training *how, int threads)
{
    struct bpe_trainer *t = xcalloc(1, sizeof *t);
    t->how = *how;
    t->threads = threads;
    return t;
}

void bpe_trainer_free(struct bpe_trainer *t)
{
    if (!t)
        return;
    counter_release(&t->counter);
    counter_release(&t->known);
    free(t->risen);
    for (uint32_t i = 0; i < t->n_words; i++)
        free(t->words[i].ids);
    for (uint32_t i = 0; i < t->n_pairs; i++)
        free(t->pairs[i].words);
    free(t->words);
    free(t->pairs);
    free(t->slots);
    free(t->heap);
    free(t->tokens);
    free(t->merges);
    arena_release(&t->texts);
    free(t);
}

/* ---- text on threads ---- */

struct share {
    const struct bpe *cuts;     /* only its cutting and specials count */
    const char *text;
    size_t *ends;               /* of the parts */
    int n;
    atomic_int next;
    struct counter *counters;   /* one per member */
};

static void count_part(struct counter *c, const struct bpe *cuts, const char *text, size_t length)
{
    size_t digit = 0;
    for (size_t at = 0, end; at < length; at = end) {
        end = piece_end(&cuts->cutting, text, at, length, &digit);
        count_piece(c, text + at, end - at, 1);
    }
}

static void count_parts(void *argument, int member)
{
    struct share *s = argument;
    for (int i; (i = atomic_fetch_add(&s->next, 1)) < s->n;) {
        const size_t first = i ? s->ends[i - 1] : 0;
        count_part(&s->counters[member], s->cuts, s->text + first, s->ends[i] - first);
    }
}

enum { PART_BYTES = 1 << 20 };

enum status bpe_trainer_add(struct bpe_trainer *t, const char *text, size_t length, struct error *err)
{
    const struct bpe cuts = {.cutting = t->how.cutting};
    struct share s = {.cuts = &cuts, .text = text};
    struct team *team = NULL;
    for (size_t at = 0; at < length;) {
        const size_t take = length - at > PART_BYTES ? bpe_cut(&cuts, text + at, PART_BYTES) : 0;
        at = take ? at + take : length;
        s.ends = xrealloc(s.ends, (size_t)(s.n + 1) * sizeof *s.ends);
        s.ends[s.n++] = at;
    }
    s.counters = xcalloc((size_t)t->threads, sizeof *s.counters);
    const enum status st = team_new(&team, t->threads, err);
    if (st == OK)
        team_run(team, count_parts, &s);
    team_free(team);
    for (int m = 0; m < t->threads; m++) {
        const struct counter *c = &s.counters[m];
        for (uint32_t i = 0; i < c->n; i++)
            count_piece(&t->counter, c->text + c->words[i].text, c->words[i].length, c->words[i].count);
        counter_release(&s.counters[m]);
    }
    free(s.counters);
    free(s.ends);
    return st;
}

size_t bpe_trainer_cut(const struct bpe_trainer *t, const char *text, size_t length)
{
    const struct bpe cuts = {.cutting = t->how.cutting};
    return bpe_cut(&cuts, text, length);
}

/* ---- pairs ---- */

static uint32_t pair_slot(const struct bpe_trainer *t, int32_t left, int32_t right)
{
    uint32_t at = (uint32_t)((((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15ull) >> 32) & t->mask;
    while (t->slots[at] && (t->pairs[t->slots[at] - 1].left != left || t->pairs[t->slots[at] - 1].right != right))
        at = (at + 1) & t->mask;
    return at;
}

static void grow_pairs(struct bpe_trainer *t)
{
    const uint32_t slots = t->mask ? 2 * (t->mask + 1) : 1 << 16;
    free(t->slots);
    t->slots = xcalloc(slots, sizeof *t->slots);
    t->mask = slots - 1;
    t->pairs_room = slots / 2;
    t->pairs = xrealloc(t->pairs, t->pairs_room * sizeof *t->pairs);
    for (uint32_t i = 0; i < t->n_pairs; i++)
        t->slots[pair_slot(t, t->pairs[i].left, t->pairs[i].right)] = i + 1;
}

static uint32_t pair_of(struct bpe_trainer *t, int32_t left, int32_t right)
{
    if (t->n_pairs + 1 >= t->pairs_room)
        grow_pairs(t);
    const uint32_t at = pair_slot(t, left, right);
    if (!t->slots[at]) {
        t->pairs[t->n_pairs] = (struct pair){.left = left, .right = right};
        t->slots[at] = ++t->n_pairs;
    }
    return t->slots[at] - 1;
}

static void note_risen(struct bpe_trainer *t, uint32_t pair)
{
    if (t->pairs[pair].risen == t->n_merges + 1)
        return;
    t->pairs[pair].risen = t->n_merges + 1;
    if (t->n_risen == t->risen_room) {
        t->risen_room = t->risen_room ? 2 * t->risen_room : 1 << 10;
        t->risen = xrealloc(t->risen, t->risen_room * sizeof *t->risen);
    }
    t->risen[t->n_risen++] = pair;
}

static void pair_seen(struct bpe_trainer *t, int32_t left, int32_t right, uint32_t word, int64_t times)
{
    const uint32_t pair = pair_of(t, left, right);
    struct pair *p = &t->pairs[pair];
    p->count += times;
    if (times < 0)
        return;
    note_risen(t, pair);
    if (p->n && p->words[p->n - 1] == word)
        return;
    if (p->n == p->room) {
        p->room = p->room ? 2 * p->room : 4;
        p->words = xrealloc(p->words, p->room * sizeof *p->words);
    }
    p->words[p->n++] = word;
}

/* ---- the heap ---- */

static bool comes_first(const struct chance *a, const struct chance *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static void heap_push(struct bpe_trainer *t, uint32_t pair)
{
    const struct pair *p = &t->pairs[pair];
    const struct chance x = {p->count, p->left, p->right, pair};
    if (t->n_heap == t->heap_room) {
        t->heap_room = t->heap_room ? 2 * t->heap_room : 1 << 12;
        t->heap = xrealloc(t->heap, t->heap_room * sizeof *t->heap);
    }
    size_t i = t->n_heap++;
    for (; i > 0 && comes_first(&x, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = x;
}

static struct chance heap_pop(struct bpe_trainer *t)
{
    const struct chance first = t->heap[0], x = t->heap[--t->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < t->n_heap; i = child) {
        if (child + 1 < t->n_heap && comes_first(&t->heap[child + 1], &t->heap[child]))
            child++;
        if (!comes_first(&t->heap[child], &x))
            break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = x;
    return first;
}

static void push_risen(struct bpe_trainer *t)
{
    for (uint32_t i = 0; i < t->n_risen; i++)
        heap_push(t, t->risen[i]);
    t->n_risen = 0;
}

/* ---- tokens ---- */

static int32_t add_token(struct bpe_trainer *t, const char *bytes, size_t length)
{
    t->tokens[t->n_tokens] = (struct bpe_bytes){arena_copy(&t->texts, bytes, length), (uint32_t)length};
    return t->n_tokens++;
}

/* A token that is there already is not made twice: "ab" and "c" may become what "a" and "bc" became before. */
static int32_t token_of(struct bpe_trainer *t, const char *bytes, size_t length)
{
    const uint32_t known = t->known.n;
    count_piece(&t->known, bytes, length, 1);
    if (t->known.n > known)
        return add_token(t, bytes, length);
    return t->how.n_specials + (int32_t)t->known.slots[slot_of(&t->known, bytes, length)] - 1;
}

/* Specials first, then bytes in the order of the characters that show them. Returns the id of each byte. */
static void begin_tokens(struct bpe_trainer *t, int32_t byte_ids[256])
{
    t->tokens = xcalloc((size_t)t->how.vocab, sizeof *t->tokens);
    for (int i = 0; i < t->how.n_specials; i++)
        add_token(t, t->how.specials[i], strlen(t->how.specials[i]));
    for (uint32_t shown = 0; shown < 0x100 + 68; shown++) {
        const int byte = bpe_byte_of(shown);
        const char one = (char)byte;
        if (byte >= 0)
            byte_ids[byte] = token_of(t, &one, 1);
    }
}

static void begin_words(struct bpe_trainer *t)
{
    int32_t byte_ids[256];
    begin_tokens(t, byte_ids);
    t->words = xcalloc(t->counter.n + 1, sizeof *t->words);
    for (uint32_t i = 0; i < t->counter.n; i++) {
        const struct word *w = &t->counter.words[i];
        struct symbols *s = &t->words[t->n_words++];
        *s = (struct symbols){.ids = xcalloc(w->length + 1, sizeof *s->ids), .n = w->length, .count = w->count};
        for (uint32_t k = 0; k < w->length; k++) {
            s->ids[k] = byte_ids[(unsigned char)t->counter.text[w->text + k]];
            if (k)
                pair_seen(t, s->ids[k - 1], s->ids[k], i, w->count);
        }
    }
    counter_release(&t->counter);
    push_risen(t);
}

/* ---- merging ---- */

/* Pairs with the neighbours of a merged one go, and come as pairs with what it became. */
static void merge_word(struct bpe_trainer *t, uint32_t word, int32_t left, int32_t right, int32_t to)
{
    struct symbols *s = &t->words[word];
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        if (k + 1 == s->n || s->ids[k] != left || s->ids[k + 1] != right) {
            s->ids[n++] = s->ids[k];
            continue;
        }
        if (n) {
            pair_seen(t, s->ids[n - 1], left, word, -s->count);
            pair_seen(t, s->ids[n - 1], to, word, s->count);
        }
        if (k + 2 < s->n) {
            pair_seen(t, right, s->ids[k + 2], word, -s->count);
            pair_seen(t, to, s->ids[k + 2], word, s->count);
        }
        s->ids[n++] = to;
        k++;
    }
    s->n = n;
}

static int32_t join(struct bpe_trainer *t, int32_t left, int32_t right)
{
    const struct bpe_bytes a = t->tokens[left], b = t->tokens[right];
    char bytes[2 * TOKEN_TEXT_MAX];
    memcpy(bytes, a.at, a.length);
    memcpy(bytes + a.length, b.at, b.length);
    return token_of(t, bytes, a.length + b.length);
}

/* No word has the pair any more after that. */
static void merge_pair(struct bpe_trainer *t, uint32_t pair, int32_t to)
{
    const struct pair p = t->pairs[pair];
    t->pairs[pair].words = NULL;
    t->pairs[pair].n = t->pairs[pair].room = 0;
    for (uint32_t i = 0; i < p.n; i++)
        merge_word(t, p.words[i], p.left, p.right, to);
    t->pairs[pair].count = 0;
    free(p.words);
}

/* The most frequent pair that makes no token too long; false: none comes twice. */
static bool best_pair(struct bpe_trainer *t, struct chance *best)
{
    while (t->n_heap) {
        *best = heap_pop(t);
        const struct pair *p = &t->pairs[best->pair];
        if (p->count != best->count) {
            if (p->count > 0 && p->count < best->count)         /* one that has risen is in the heap once more */
                heap_push(t, best->pair);
            continue;
        }
        if (t->tokens[p->left].length + t->tokens[p->right].length < TOKEN_TEXT_MAX)
            return best->count >= t->how.least;
    }
    return false;
}

static void add_merge(struct bpe_trainer *t, int32_t left, int32_t right)
{
    if (t->n_merges == t->merges_room) {
        t->merges_room = t->merges_room ? 2 * t->merges_room : 1 << 10;
        t->merges = xrealloc(t->merges, (size_t)t->merges_room * sizeof *t->merges);
    }
    t->merges[t->n_merges][0] = left;
    t->merges[t->n_merges++][1] = right;
}

static enum status learn(struct bpe_trainer *t, struct error *err)
{
    struct chance best;
    begin_words(t);
    while (t->n_tokens < t->how.vocab && best_pair(t, &best)) {
        const enum status st = setup_check("tokenizer", err);
        if (st != OK)
            return st;
        add_merge(t, best.left, best.right);
        merge_pair(t, best.pair, join(t, best.left, best.right));
        push_risen(t);
    }
    return OK;
}

/* ---- what was learned ---- */

static bool put_token(json_t *vocab, const struct bpe_trainer *t, int32_t id, char *shown)
{
    if (id < t->how.n_specials)
        snprintf(shown, 2 * TOKEN_TEXT_MAX, "%s", t->how.specials[id]);
    else
        bpe_show(t->tokens[id].at, t->tokens[id].length, shown);
    return json_object_set_new(vocab, shown, json_integer(id)) == 0;
}

static bool put_merges(json_t *merges, const struct bpe_trainer *t, char *shown)
{
    bool made = true;
    for (int32_t i = 0; made && i < t->n_merges; i++) {
        const struct bpe_bytes a = t->tokens[t->merges[i][0]], b = t->tokens[t->merges[i][1]];
        size_t n = bpe_show(a.at, a.length, shown);
        shown[n++] = ' ';
        bpe_show(b.at, b.length, shown + n);
        made = json_array_append_new(merges, json_string(shown)) == 0;
    }
    return made;
}

/* Two ids of one text would be one token. */
static enum status check_specials(const struct bpe_trainer *t, const json_t *vocab, struct error *err)
{
    for (int i = 0; i < t->how.n_specials; i++)
        if (json_integer_value(json_object_get(vocab, t->how.specials[i])) != i)
            return error_set(err, BAD_INPUT, "the special token '%.60s' would be a token of the text, too, or is too long; choose one that no text has, such as <|%.40s|>",
                             t->how.specials[i], t->how.specials[i]);
    return OK;
}

static enum status document(const struct bpe_trainer *t, char **text, struct error *err)
{
    json_t *vocab = json_object(), *merges = json_array(), *specials = json_array();
    char shown[4 * TOKEN_TEXT_MAX + 2];
    bool made = vocab && merges && specials;
    for (int32_t i = 0; made && i < t->n_tokens; i++)
        made = put_token(vocab, t, i, shown);
    made = made && put_merges(merges, t, shown);
    for (int i = 0; made && i < t->how.n_specials; i++)
        made = json_array_append_new(specials, json_string(t->how.specials[i])) == 0;
    const enum status st = made ? check_specials(t, vocab, err) : OK;
    if (made && st == OK) {
        *text = bpe_document(vocab, merges, specials, &t->how.cutting);
    } else {
        json_decref(vocab);
        json_decref(merges);
        json_decref(specials);
    }
    return st != OK || *text ? st : error_set(err, CANNOT, "out of memory for the tokenizer");
}

enum status bpe_trainer_finish(struct bpe_trainer *t, struct bpe **out, struct error *err)
{
    enum status st = t->counter.n ? learn(t, err) : error_set(err, BAD_INPUT, "there is no text to make a tokenizer of");
    char *text = NULL;
    if (st == OK)
        st = document(t, &text, err);
    if (st == OK)
        st = bpe_parse(out, "the new tokenizer", text, strlen(text), err);
    setup_done();
    free(text);
    return st;
}
