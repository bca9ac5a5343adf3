/* Tuned: attention as one op, in blocks with a running softmax; flash.h says how blocks lie. Work is split over the threads
 * by head and block of queries, in shares of equal cost; a block of queries is the same whoever computes it. */
#include "ops/cpu/pairs/attention.h"
#include "ops/cpu/tuned/flash.h"

/* A thread's own memory. */
struct forward {
    float *copy;                /* (2, rows, width): where k and v are copied to */
    const float *k, *v;         /* (rows, width) with row stride key_row: one batch and kv head */
    int64_t key_row;
    float *q;                   /* (size, QUERIES): a block of queries, times scale */
    float *y;                   /* (QUERIES, width): its result, not yet divided by the sums */
    float *s, *keep;            /* (KEYS, PANEL): scores, then weights */
    float *largest, *sum;       /* (QUERIES) */
    float *factor;              /* (QUERIES): by which what was summed before must shrink; one over the sum */
    int64_t loaded;             /* whose k and v: b * kv_heads + kv */
};

static int64_t forward_floats(const struct flash *f)
{
    return 2 * f->rows * f->width + 2 * f->width * QUERIES + 2 * KEYS * PANEL + 3 * QUERIES;
}

static struct forward forward_of(const struct flash *f, float *m)
{
    struct forward w = {.loaded = -1};
    w.copy = m;
    w.q = w.copy + 2 * f->rows * f->width;
    w.y = w.q + f->width * QUERIES;
    w.s = w.y + f->width * QUERIES;
    w.keep = w.s + KEYS * PANEL;
    w.largest = w.keep + KEYS * PANEL;
    w.sum = w.largest + QUERIES;
    w.factor = w.sum + QUERIES;
    return w;
}

static void load_keys(const struct flash *f, struct forward *w, int64_t b, int64_t kv)
{
    const int64_t stride = f->kv_heads * f->size, at = b * f->seq * stride + kv * f->size;
    if (w->loaded == b * f->kv_heads + kv)
        return;
    w->loaded = b * f->kv_heads + kv;
    w->k = f->k + at;
    w->v = f->v + at;
    w->key_row = stride;
    if (f->in_place)
        return;
    float *k = w->copy, *v = k + f->rows * f->width;
    TUNED(flash_copy)(k, f->width, f->rows, w->k, stride, f->seq, f->size);
    TUNED(flash_copy)(v, f->width, f->rows, w->v, stride, f->seq, f->size);
    w->k = k;
    w->v = v;
    w->key_row = f->width;
}

/* Turns scores (keys, PANEL) into weights over the largest score so far, brings largest and sum of the panel up to date, and
 * gives the factor by which what was summed before must shrink. A score that is not a number reaches the sum in any case. */
KERNEL void soften(float *s, const struct sight *g, float *largest, float *sum, float *factor)
{
    const vec none = all(-INFINITY), before[2] = {load(largest), load(largest + LANES)};
    vec now[2] = {before[0], before[1]}, shift[2], added[4] = {0};
    int64_t j = 0;
    for (; j < g->both; j++) {
        now[0] = larger(now[0], load(s + j * PANEL));
        now[1] = larger(now[1], load(s + j * PANEL + LANES));
    }
    for (; j < g->keys; j++)
        now[1] = larger(now[1], load(s + j * PANEL + LANES));
    UNROLL(2)
    for (int i = 0; i < 2; i++)
        shift[i] = choose(now[i] == none, all(0), now[i]);          /* -inf less -inf is NaN */
    for (j = 0; j < g->both; j += 2) {                  /* rows are whole tiles of four or eight; see mask_scores */
        vec e[4];
        UNROLL(4)
        for (int i = 0; i < 4; i++)
            e[i] = exp_low(load(s + j * PANEL + i * LANES) - shift[i % 2]);
        UNROLL(4)
        for (int i = 0; i < 4; i++) {
            store(s + j * PANEL + i * LANES, e[i]);
            added[i] += e[i];
        }
    }
    for (; j < g->keys; j += 4) {
        vec e[4];
        UNROLL(4)
        for (int i = 0; i < 4; i++)
            e[i] = exp_low(load(s + (j + i) * PANEL + LANES) - shift[1]);
        UNROLL(4)
        for (int i = 0; i < 4; i++) {
            store(s + (j + i) * PANEL + LANES, e[i]);
            added[1 + i / 2 * 2] += e[i];
        }
    }
    UNROLL(2)
    for (int i = 0; i < 2; i++) {
        const vec less = exp_low(before[i] - shift[i]);
        store(sum + i * LANES, load(sum + i * LANES) * less + (added[i] + added[i + 2]));
        store(factor + i * LANES, less);
        store(largest + i * LANES, now[i]);
    }
}

/* One panel and one block of keys; y has rows of all heads. */
static void attend(const struct flash *f, struct forward *w, const struct sight *g, int64_t at, float *y)
{
    const int64_t key = g->key * w->key_row;
    const struct depth seen = {seen_first(f, g), g->keys};
    rows_times_panel(w->s, PANEL, g, f->size, w->k + key, w->key_row, w->q + at, QUERIES);
    mask_scores(w->s, PANEL, f, g);
    soften(w->s, g, w->largest + at, w->sum + at, w->factor);
    if (f->prob > 0) {
        TUNED(flash_keep)(w->keep, f, g);
        for (int64_t i = 0; i < g->keys * PANEL; i++)
            w->s[i] *= w->keep[i];
    }
    if (!f->direct) {
        add_panel_times_rows(w->y + at * f->width, f->width, w->factor, seen, w->s, PANEL, w->v + key, w->key_row);
        return;
    }
    store(w->factor, 1 / load(w->sum + at));
    store(w->factor + LANES, 1 / load(w->sum + at + LANES));
    panel_times_rows(y + at * f->heads * f->size, f->heads * f->size, f->width, w->factor, seen, w->s, PANEL, w->v + key,
                     w->key_row);
}

/* Divides by the sums. */
static void write_block(const struct flash *f, const struct forward *w, int64_t rows, float *y)
{
    for (int64_t i = 0; i < rows; i += LANES)
        store(w->factor + i, 1 / load(w->sum + i));
    for (int64_t i = 0; i < rows; i++)
        scale_row(y + i * f->heads * f->size, w->y + i * f->width, f->size, w->factor[i]);
}

static void write_sums(const struct forward *w, int64_t rows, float *largest, float *sums)
{
    for (int64_t i = 0; i < rows; i++) {
        largest[i] = w->largest[i] == -INFINITY ? 0 : w->largest[i];
        sums[i] = w->sum[i];
    }
}

static void attend_block(const struct flash *f, struct forward *w, int64_t head, int64_t first, void *const *out)
{
    const int64_t rows = least(QUERIES, f->seq - first), lanes = up_to(rows, PANEL), stride = f->heads * f->size;
    const int64_t at = (head / f->heads * f->seq + first) * stride + head % f->heads * f->size, row = head * f->seq + first;
    float *y = (float *)out[0] + at;
    load_keys(f, w, head / f->heads, head % f->heads / f->group);
    expect_rows(y, stride, rows, f->size);
    if (rows < lanes)
        memset(w->q, 0, (size_t)(f->size * QUERIES) * sizeof *w->q);
    TUNED(flash_transpose)(w->q, QUERIES, f->q + at, stride, rows, f->size, f->scale);
    if (!f->direct)
        memset(w->y, 0, (size_t)(f->width * QUERIES) * sizeof *w->y);
    for (int64_t i = 0; i < lanes; i++) {
        w->largest[i] = -INFINITY;
        w->sum[i] = 0;
    }
    for (int64_t key = 0; key < (f->causal ? first + rows : f->seq); key += KEYS)
        for (int64_t i = 0; i < lanes; i += PANEL) {
            const struct sight g = sight_of(f, head, first + i, key);
            if (g.keys > 0 && !sees_nothing(f, head, first + i, key + KEYS))
                attend(f, w, &g, i, y);
        }
    if (!f->direct)
        write_block(f, w, rows, y);
    write_sums(w, rows, (float *)out[1] + row, (float *)out[2] + row);
}

/* Where a share of the blocks (head by head) begins: under a causal mask block n of a head costs n + 1. */
static int64_t share_start(const struct flash *f, int part, int parts)
{
    const int64_t blocks = blocks_of(f), heads = f->batch * f->heads;
    const int64_t per_head = f->causal ? blocks * (blocks + 1) / 2 : blocks;
    int64_t n = 0;
    for (int64_t cost = 0; n < heads * blocks && cost * parts < heads * per_head * part; n++)
        cost += f->causal ? n % blocks + 1 : 1;
    return n;
}

static struct span my_blocks(const struct flash *f, const struct kernel_thread *t)
{
    return (struct span){share_start(f, t->index, t->count), share_start(f, t->index + 1, t->count)};
}

/* HONE_AMX: this is the variant for CPUs that may have it. */
#if defined(HONE_AMX)
_Static_assert((int)QUERIES == PAIRS_QUERIES && (int)PANEL == PAIRS_QUERIES, "blocks of queries are the same by tiles");
static size_t tile_bytes(const struct flash *f) { return pairs_attention_bytes(f); }
static void attend_by_tiles(const struct flash *f, struct span blocks, void *const *out, void *memory)
{
    pairs_attention(f, blocks, out, TUNED(flash_keep), memory);
}
#else
static size_t tile_bytes(const struct flash *f) { return (void)f, 0; }
static void attend_by_tiles(const struct flash *f, struct span blocks, void *const *out, void *memory)
{
    (void)f, (void)blocks, (void)out, (void)memory;
}
#endif

/* Of a thread. */
static size_t forward_bytes(const struct flash *f)
{
    return f->tiles ? tile_bytes(f) : (size_t)up_to(forward_floats(f), 16) * sizeof(float);
}

/* A thread's blocks. A piece has all that it has of some kv heads: the keys of each are taken once. */
struct attending {
    const struct kernel_call *c;
    const struct kernel_thread *t;
    const struct flash *f;
    struct span blocks;
    int64_t each;               /* blocks of whole kv heads */
};

static void attend_piece(void *argument, int piece, int helper)
{
    const struct attending *a = argument;
    const struct flash *f = a->f;
    const struct kernel_thread doer = kernel_doer(a->t, helper);
    void *memory = call_scratch(a->c, &doer);
    const int64_t first = (a->blocks.lo / a->each + piece) * a->each;
    const struct span now = {piece ? first : a->blocks.lo, least(first + a->each, a->blocks.hi)};
    if (f->tiles) {
        attend_by_tiles(f, now, a->c->out, memory);
        return;
    }
    struct forward w = forward_of(f, memory);
    for (int64_t n = now.lo; n < now.hi; n++)
        attend_block(f, &w, n / blocks_of(f), n % blocks_of(f) * QUERIES, a->c->out);
}

static void attention(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct flash f = TUNED(flash_of)(c->program, c->op, c->in);
    const int64_t head = blocks_of(&f) * f.group;
    const int64_t all = f.batch * f.kv_heads, mine = all / t->count, each = piece_units(mine, f.group * f.seq * f.seq * f.size);
    struct attending a = {c, t, &f, my_blocks(&f, t), head * (each < mine ? each : all)};
    if (a.blocks.lo < a.blocks.hi)
        team_pieces(attend_piece, &a, (int)(piece_count(a.blocks.hi, a.each) - a.blocks.lo / a.each));
}

static size_t attention_scratch(const struct program *p, const struct op *op, int threads)
{
    const struct flash f = TUNED(flash_of)(p, op, NULL);
    return (size_t)threads * forward_bytes(&f);
}

/* q, k and v. */
static struct share attention_share(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct flash f = TUNED(flash_of)(c->program, c->op, NULL);
    const struct span mine = my_blocks(&f, t);
    return share_samples(&f, mine.lo, mine.hi, f.heads * blocks_of(&f), 7);
}

const struct kernel TUNED(flash)[] = {
    {.op = OP_ATTENTION, .name = "flash", .run = attention, .scratch = attention_scratch, .share = attention_share},
    {.op = OP_ATTENTION_GRAD, .name = "flash", .run = TUNED(flash_grad), .scratch = TUNED(flash_grad_scratch), .share = TUNED(flash_grad_share)},
    {.run = NULL},
};
