/* Tuned: the backward of attention in blocks. Weights are made again from q, k, the largest scores and the sums. Every task
 * adds to the gradients of one kv head's keys and values, in memory of its own and in a fixed order; where there are fewer kv
 * heads than threads can share, a kv head is split into several tasks, whose sums are added at the end. */
#include "ops/cpu/pairs/attention.h"
#include "ops/cpu/tuned/flash.h"
#include "ops/cpu/tuned/lanes.h"

/* A thread's own memory. */
struct backward {
    float *key_copy;            /* (2, rows, width): where k and v are copied to */
    const float *k, *v;         /* (rows, width) with row stride key_row: one batch and kv head */
    float *query_copy;          /* (2, QUERIES, width): where q and dy are copied to */
    const float *q, *dy;        /* (QUERIES, width) with row stride query_row: a block of queries */
    int64_t key_row, query_row;
    float *q_t, *dy_t;          /* (width, QUERIES): the same transposed, times scale */
    float *dq;                  /* (QUERIES, width): the gradient of q */
    float *w, *ds;              /* (KEYS, QUERIES): weights, gradient of the scores times scale */
    float *keep;                /* (KEYS, PANEL) */
    float *largest, *share;     /* (QUERIES): the largest score, one over the sum */
    float *all;                 /* (QUERIES): dy y, what the gradients of a row's weights sum to, times scale */
    void *tiles;                /* memory of pairs/attention_grad.c, which needs the last three of these alone */
};

/* Where a task sums the gradients of k and v. */
struct key_sums {
    float *dk, *dv;             /* (rows, width) with row stride row */
    int64_t row;
    bool empty;                 /* nothing is there yet: write, do not add */
};

/* The tasks of a call: task n is part n % parts of kv head n / parts. */
struct tasks {
    int64_t n, parts;
    int64_t slots;              /* sums of dk, dv: one per task, or per thread where parts is 1 */
};

static int64_t slot_floats(const struct flash *f) { return 2 * f->rows * f->width; }

/* HONE_AMX: this is the variant for CPUs that may have it. */
#if defined(HONE_AMX)
static size_t tile_bytes(const struct flash *f) { return pairs_attention_grad_bytes(f); }
#else
static size_t tile_bytes(const struct flash *f) { return (void)f, 0; }
#endif

static int64_t backward_floats(const struct flash *f)
{
    return f->tiles ? 3 * QUERIES + (int64_t)(tile_bytes(f) / sizeof(float)) : up_to(2 * f->rows * f->width + 5 * f->width * QUERIES + 2 * KEYS * QUERIES + KEYS * PANEL + 3 * QUERIES, 16);
}

static struct backward backward_of(const struct flash *f, float *m)
{
    struct backward w = {.largest = m, .share = m + QUERIES, .all = m + 2 * QUERIES, .tiles = m + 3 * QUERIES};
    if (f->tiles)
        return w;
    w.key_copy = m;
    w.query_copy = w.key_copy + 2 * f->rows * f->width;
    w.q_t = w.query_copy + 2 * f->width * QUERIES;
    w.dy_t = w.q_t + f->width * QUERIES;
    w.dq = w.dy_t + f->width * QUERIES;
    w.w = w.dq + f->width * QUERIES;
    w.ds = w.w + KEYS * QUERIES;
    w.keep = w.ds + KEYS * QUERIES;
    w.largest = w.keep + KEYS * PANEL;
    w.share = w.largest + QUERIES;
    w.all = w.share + QUERIES;
    return w;
}

/* The fewest parts by which the threads get equal or many shares. */
static struct tasks tasks_of(const struct flash *f, int threads)
{
    const int64_t heads = f->batch * f->kv_heads, most = f->group * blocks_of(f);
    int64_t parts = 1;
    while (parts < most && heads * parts % threads && heads * parts < 4 * threads)
        parts++;
    return (struct tasks){heads * parts, parts, parts > 1 ? heads * parts : threads};
}

/* to (rows) = the sums of the products of rows of a and b, times scale; by fours, for a sum across a vector is dear. */
static void row_products(float *to, const float *a, const float *b, int64_t row, int64_t rows, int64_t size, float scale)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4, a += 4 * row, b += 4 * row) {
        vec x[4] = {0};
        float rest[4] = {0};
        int64_t e = 0;
        for (; e + LANES <= size; e += LANES)
            UNROLL(4)
            for (int k = 0; k < 4; k++)
                x[k] += load(a + k * row + e) * load(b + k * row + e);
        for (; e < size; e++)
            for (int k = 0; k < 4; k++)
                rest[k] += a[k * row + e] * b[k * row + e];
        *(quad *)(to + i) = (lanes_totals(x) + *(quad *)rest) * scale;
    }
    for (; i < rows; i++, a += row, b += row) {
        float sum = 0;
        for (int64_t e = 0; e < size; e++)
            sum += a[e] * b[e];
        to[i] = sum * scale;
    }
}

/* Points k and v at one kv head, whose first element is at `at`. */
static void load_keys(const struct flash *f, struct backward *w, int64_t at)
{
    w->k = f->k + at;
    w->v = f->v + at;
    w->key_row = f->kv_heads * f->size;
    if (f->in_place)
        return;
    float *k = w->key_copy, *v = k + f->rows * f->width;
    TUNED(flash_copy)(k, f->width, f->rows, w->k, w->key_row, f->seq, f->size);
    TUNED(flash_copy)(v, f->width, f->rows, w->v, w->key_row, f->seq, f->size);
    w->k = k;
    w->v = v;
    w->key_row = f->width;
}

/* q and dy of a block of queries, and their transposes. */
static void load_rows(const struct flash *f, struct backward *w, const float *q, const float *dy, int64_t rows)
{
    const int64_t stride = f->heads * f->size;
    if (f->in_place) {
        TUNED(flash_transpose)(w->q_t, QUERIES, q, stride, rows, f->size, f->scale);
        TUNED(flash_transpose)(w->dy_t, QUERIES, dy, stride, rows, f->size, f->scale);
        w->q = q;
        w->dy = dy;
        w->query_row = stride;
        return;
    }
    float *q_copy = w->query_copy, *dy_copy = q_copy + f->width * QUERIES;
    TUNED(flash_take)(w->q_t, QUERIES, q_copy, f->width, q, stride, rows, f->size, f->scale);
    TUNED(flash_take)(w->dy_t, QUERIES, dy_copy, f->width, dy, stride, rows, f->size, f->scale);
    w->q = q_copy;
    w->dy = dy_copy;
    w->query_row = f->width;
}

/* A block of queries of a head: where its rows are. */
struct block {
    int64_t head, first, rows;
    const float *q, *dy, *y;
    float *dq;
};

static struct block block_of(const struct flash *f, const struct kernel_call *c, int64_t head, int64_t first)
{
    const int64_t at = (head / f->heads * f->seq + first) * f->heads * f->size + head % f->heads * f->size;
    return (struct block){head, first, least(QUERIES, f->seq - first), f->q + at, (const float *)c->in[0] + at, (const float *)c->in[4] + at,
                          (float *)c->out[0] + at};
}

/* What is known of its queries; 0 where there is none. */
static void load_facts(const struct flash *f, struct backward *w, const struct kernel_call *c, const struct block *b)
{
    const int64_t stride = f->heads * f->size, row = b->head * f->seq + b->first;
    const float *largest = (const float *)c->in[5] + row, *sums = (const float *)c->in[6] + row;
    expect_rows(b->y, stride, b->rows, f->size);
    if (b->rows % PANEL)
        memset(w->largest, 0, 3 * QUERIES * sizeof *w->largest);    /* share and all too */
    memcpy(w->largest, largest, (size_t)b->rows * sizeof *largest);
    INDEPENDENT
    for (int64_t i = 0; i < b->rows; i++)
        w->share[i] = 1 / sums[i];
    row_products(w->all, b->dy, b->y, stride, b->rows, f->size, f->scale);
}

static void load_queries(const struct flash *f, struct backward *w, const struct block *b)
{
    if (b->rows % PANEL) {
        memset(w->q_t, 0, (size_t)(f->width * QUERIES) * sizeof *w->q_t);
        memset(w->dy_t, 0, (size_t)(f->width * QUERIES) * sizeof *w->dy_t);
    }
    load_rows(f, w, b->q, b->dy, b->rows);
}

/* Scores become weights, the gradients of weights those of scores: (keys, LANES) of rows of QUERIES, the first query at `at`. With dropout, weights that were dropped have no gradient and gave nothing; keep is NULL without. */
KERNEL void grad_of_scores(const struct backward *b, int64_t at, int64_t keys, const float *keep)
{
    float *w = b->w + at, *ds = b->ds + at;
    const vec largest = load(b->largest + at), share = load(b->share + at), whole = load(b->all + at);
    for (int64_t j = 0; j < keys; j += 4) {             /* rows are whole tiles of four or eight; see mask_scores */
        vec e[4];
        UNROLL(4)
        for (int i = 0; i < 4; i++)
            e[i] = exp_low(load(w + (j + i) * QUERIES) - largest) * share;
        UNROLL(4)
        for (int i = 0; i < 4; i++) {
            const int64_t to = (j + i) * QUERIES;
            vec given = e[i], dw = load(ds + to);
            if (keep) {
                const vec m = load(keep + (j + i) * PANEL);
                given *= m;
                dw *= m;
            }
            store(w + to, given);
            store(ds + to, e[i] * (dw - whole));
        }
    }
}

/* Weights and gradients of scores for one panel, and its part of dq, which has rows of all heads. */
static void panel_grad(const struct flash *f, struct backward *w, const struct sight *g, int64_t at, float *dq)
{
    static const float one[PANEL] = {[0 ... PANEL - 1] = 1};
    const int64_t row = w->key_row, stride = f->heads * f->size;
    const float *k = w->k + g->key * row, *v = w->v + g->key * row, *keep = f->prob > 0 ? w->keep : NULL;
    const struct depth seen = {seen_first(f, g), g->keys};
    rows_times_panel(w->w + at, QUERIES, g, f->size, k, row, w->q_t + at, QUERIES);
    rows_times_panel(w->ds + at, QUERIES, g, f->size, v, row, w->dy_t + at, QUERIES);
    mask_scores(w->w + at, QUERIES, f, g);
    if (keep)
        TUNED(flash_keep)(w->keep, f, g);
    grad_of_scores(w, at, g->both, keep);
    grad_of_scores(w, at + LANES, g->keys, keep ? keep + LANES : NULL);
    if (f->direct)
        panel_times_rows(dq + at * stride, stride, f->width, one, seen, w->ds + at, QUERIES, k, row);
    else
        add_panel_times_rows(w->dq + at * f->width, f->width, one, seen, w->ds + at, QUERIES, k, row);
}

/* c (TILE, one vector or two) = a (TILE, depth) b (depth, as c); or c += it. */
INLINE void sum_tile(const bool two, float *c, int64_t c_row, bool empty, int64_t depth, const float *a, const float *b, int64_t b_row)
{
    vec x[TILE], y[TILE];
    product(two, x, y, depth, a, QUERIES, 1, b, b_row);
    UNROLL(8)
    for (int i = 0; i < TILE; i++) {
        float *to = c + i * c_row;
        store(to, empty ? x[i] : (vec)(load(to) + x[i]));
        if (two)
            store(to + LANES, empty ? y[i] : (vec)(load(to + LANES) + y[i]));
    }
}

/* c (TILE, size) the same way. */
KERNEL void sum_rows(float *c, int64_t c_row, bool empty, int64_t size, int64_t depth, const float *a, const float *b,
                     int64_t b_row)
{
    int64_t e = 0;
    for (; e + LANES < size; e += PANEL)
        sum_tile(true, c + e, c_row, empty, depth, a, b + e, b_row);
    if (e < size)
        sum_tile(false, c + e, c_row, empty, depth, a, b + e, b_row);
}

/* What a block of queries gives to a block of keys: dv += w^T dy, dk += ds^T q, from the first query that sees one of a tile's keys. */
static void keys_grad(const struct flash *f, struct backward *w, int64_t first, int64_t rows, int64_t key,
                      const struct key_sums *s)
{
    for (int64_t j = 0; j < least(KEYS, f->seq - key); j += TILE) {
        const int64_t ahead = key + j - first;
        const int64_t from = f->causal && ahead > 0 ? ahead : 0, to = (key + j) * s->row;
        const float *dy = w->dy + from * w->query_row, *q = w->q + from * w->query_row;
        if (from >= rows)
            break;
        sum_rows(s->dv + to, s->row, s->empty, f->size, rows - from, w->w + j * QUERIES + from, dy, w->query_row);
        sum_rows(s->dk + to, s->row, s->empty, f->size, rows - from, w->ds + j * QUERIES + from, q, w->query_row);
    }
}

/* Keys that no query sees have no gradient, which must be written where nothing is there yet. */
static void clear_keys(const struct flash *f, int64_t key, const struct key_sums *s)
{
    for (int64_t j = key; s->empty && j < least(key + KEYS, f->rows); j++) {
        memset(s->dk + j * s->row, 0, (size_t)f->size * sizeof *s->dk);
        memset(s->dv + j * s->row, 0, (size_t)f->size * sizeof *s->dv);
    }
}

static void block_grad(const struct flash *f, struct backward *w, const struct block *b, const struct key_sums *s)
{
    const int64_t first = b->first, rows = b->rows, stride = f->heads * f->size;
    load_queries(f, w, b);
    expect_rows(b->dq, stride, rows, f->size);
    if (!f->direct)
        memset(w->dq, 0, (size_t)(f->width * QUERIES) * sizeof *w->dq);
    for (int64_t key = 0; key < (f->causal ? first + rows : f->seq); key += KEYS) {
        if (sees_nothing(f, b->head, first, key + KEYS)) {
            clear_keys(f, key, s);
            continue;
        }
        for (int64_t i = 0; i < rows; i += PANEL) {
            const struct sight g = sight_of(f, b->head, first + i, key);
            if (g.keys > 0)
                panel_grad(f, w, &g, i, b->dq);
        }
        keys_grad(f, w, first, rows, key, s);
    }
    for (int64_t i = 0; i < rows && !f->direct; i++)
        scale_row(b->dq + i * stride, w->dq + i * f->width, f->size, 1);
}

/* HONE_AMX: this is the variant for CPUs that may have it. */
#if defined(HONE_AMX)
static void take_keys_by_tiles(const struct flash *f, const struct backward *w, int64_t at) { pairs_attention_take(f, at, w->tiles); }
static void block_grad_by_tiles(const struct flash *f, const struct backward *w, const struct block *b, const struct key_sums *s)
{
    const struct pairs_queries queries = {b->head, b->first, b->rows, b->q, b->dy, w->largest, w->share, w->all, b->dq};
    pairs_attention_grad(f, &queries, &(struct pairs_sums){s->dk, s->dv, s->row, s->empty}, TUNED(flash_keep), w->tiles);
}
static void begin(const struct flash *f) { if (f->tiles) pairs_attention_begin(); }
static void end(const struct flash *f) { if (f->tiles) pairs_attention_end(); }
#else
static void take_keys_by_tiles(const struct flash *f, const struct backward *w, int64_t at) { (void)f, (void)w, (void)at; }
static void block_grad_by_tiles(const struct flash *f, const struct backward *w, const struct block *b, const struct key_sums *s)
{
    (void)f, (void)w, (void)b, (void)s;
}
static void begin(const struct flash *f) { (void)f; }
static void end(const struct flash *f) { (void)f; }
#endif

/* Blocks of the group's queries go to the parts there and back, so that dear and cheap ones mix. */
static bool is_mine(int64_t block, int64_t part, int64_t parts)
{
    const int64_t place = block % parts;
    return (block / parts % 2 ? parts - 1 - place : place) == part;
}

static void any_block_grad(const struct flash *f, struct backward *w, const struct kernel_call *c, const struct block *b, const struct key_sums *s)
{
    load_facts(f, w, c, b);
    if (f->tiles)
        block_grad_by_tiles(f, w, b, s);
    else
        block_grad(f, w, b, s);
}

/* The last block of queries comes first: it sees all keys. */
static void run_task(const struct flash *f, struct backward *w, const struct kernel_call *c, int64_t kv_head, int64_t part,
                     int64_t parts, struct key_sums s)
{
    const int64_t b = kv_head / f->kv_heads, kv = kv_head % f->kv_heads, blocks = blocks_of(f);
    const int64_t at = (b * f->seq * f->kv_heads + kv) * f->size;
    if (f->tiles)
        take_keys_by_tiles(f, w, at);
    else
        load_keys(f, w, at);
    for (int64_t n = f->group * blocks - 1; n >= 0; n--)
        if (is_mine(n, part, parts)) {
            const struct block q = block_of(f, c, b * f->heads + kv * f->group + n / blocks, n % blocks * QUERIES);
            any_block_grad(f, w, c, &q, &s);
            s.empty = false;
        }
}

/* A kv head that is one task is summed where its gradients belong, if rows are near. */
static struct key_sums sums_of(const struct flash *f, const struct kernel_call *c, int64_t n, int64_t parts, float *slot)
{
    const int64_t stride = f->kv_heads * f->size, at = (n / f->kv_heads * f->seq * f->kv_heads + n % f->kv_heads) * f->size;
    if (parts == 1 && f->in_place)
        return (struct key_sums){(float *)c->out[1] + at, (float *)c->out[2] + at, stride, true};
    if (parts > 1)                                  /* what a part's queries do not see stays 0 */
        memset(slot, 0, (size_t)slot_floats(f) * sizeof *slot);
    return (struct key_sums){slot, slot + f->rows * f->width, f->width, parts == 1};
}

/* Writes rows [lo, hi) of dk and dv of a kv head from the sums of its parts. */
static void write_rows(const struct flash *f, const struct kernel_call *c, int64_t kv_head, int64_t lo, int64_t hi,
                       const float *slot, int64_t parts)
{
    const int64_t b = kv_head / f->kv_heads, kv = kv_head % f->kv_heads;
    for (int64_t j = lo; j < hi; j++) {
        const int64_t at = ((b * f->seq + j) * f->kv_heads + kv) * f->size;
        float *dk = (float *)c->out[1] + at, *dv = (float *)c->out[2] + at;
        expect_rows(dk + AHEAD * f->kv_heads * f->size, 0, 1, f->size);
        expect_rows(dv + AHEAD * f->kv_heads * f->size, 0, 1, f->size);
        const float *k = slot + j * f->width, *v = k + f->rows * f->width;
        scale_row(dk, k, f->size, 1);
        scale_row(dv, v, f->size, 1);
        for (int64_t part = 1; part < parts; part++) {
            k += slot_floats(f);
            v += slot_floats(f);
            for (int64_t e = 0; e < f->size; e++) {
                dk[e] += k[e];
                dv[e] += v[e];
            }
        }
    }
}

/* A thread's tasks. */
struct gradients {
    const struct kernel_call *c;
    const struct kernel_thread *t;
    const struct flash *f;
    struct tasks tasks;
    struct span mine;
    int64_t each;               /* of a piece */
};

/* Memory of a thread, and, where heads have several parts, the sums of all parts, or else of one task at a time. */
static float *own_memory(const struct gradients *g, int helper)
{
    const struct kernel_thread doer = kernel_doer(g->t, helper);
    return g->tasks.parts > 1 ? (float *)g->c->scratch + doer.index * backward_floats(g->f) : call_scratch(g->c, &doer);
}
static float *slot_of(const struct gradients *g, int64_t task, float *own)
{
    return g->tasks.parts > 1 ? (float *)g->c->scratch + g->t->count * backward_floats(g->f) + task * slot_floats(g->f) : own + backward_floats(g->f);
}

static void grad_piece(void *argument, int piece, int helper)
{
    const struct gradients *g = argument;
    const struct flash *f = g->f;
    const int64_t parts = g->tasks.parts;
    float *own = own_memory(g, helper);
    struct backward w = backward_of(f, own);
    begin(f);
    for (int64_t n = g->mine.lo + piece * g->each; n < least(g->mine.lo + (piece + 1) * g->each, g->mine.hi); n++) {
        float *slot = slot_of(g, n, own);
        run_task(f, &w, g->c, n / parts, n % parts, parts, sums_of(f, g->c, n, parts, slot));
        if (parts == 1 && !f->in_place)
            write_rows(f, g->c, n, 0, f->seq, slot, 1);
    }
    end(f);
}

void TUNED(flash_grad)(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct flash f = TUNED(flash_of)(c->program, c->op, c->in);
    const struct tasks tasks = tasks_of(&f, t->count);
    const struct span mine = my_rows(t, tasks.n);
    const int64_t n = mine.hi - mine.lo;
    struct gradients g = {c, t, &f, tasks, mine, piece_units(n, 5 * f.group * f.seq * f.seq * f.size / tasks.parts)};
    team_pieces(grad_piece, &g, piece_count(n, g.each));
    if (tasks.parts == 1)
        return;
    team_barrier(t->team);
    const struct span rows = my_rows(t, f.batch * f.kv_heads * f.seq);
    const float *slots = slot_of(&g, 0, NULL);
    for (int64_t r = rows.lo; r < rows.hi; r++)
        write_rows(&f, c, r / f.seq, r % f.seq, r % f.seq + 1, slots + r / f.seq * tasks.parts * slot_floats(&f), tasks.parts);
}

/* dy, q, k, v, y and what is known of each row, where no two threads have a part of the same head. */
struct share TUNED(flash_grad_share)(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct flash f = TUNED(flash_of)(c->program, c->op, NULL);
    const struct tasks tasks = tasks_of(&f, t->count);
    const struct span mine = my_rows(t, tasks.n);
    return tasks.parts > 1 ? (struct share){0} : share_samples(&f, mine.lo, mine.hi, f.kv_heads, 0x7f);
}

size_t TUNED(flash_grad_scratch)(const struct program *p, const struct op *op, int threads)
{
    const struct flash f = TUNED(flash_of)(p, op, NULL);
    return (size_t)(threads * backward_floats(&f) + tasks_of(&f, threads).slots * slot_floats(&f)) * sizeof(float);
}
