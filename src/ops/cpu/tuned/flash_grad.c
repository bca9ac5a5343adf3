/* Tuned: the backward of attention in blocks. Weights are made again from q, k and the logs of the sums. Every task adds to
 * the gradients of one kv head's keys and values, in memory of its own and in a fixed order; where there are fewer kv heads
 * than threads can share, a kv head is split into several tasks, whose sums are added at the end. */
#include "ops/cpu/tuned/flash.h"

/* A thread's own memory. */
struct backward {
    float *k, *v;               /* (rows, width): one batch and kv head */
    float *q, *dy;              /* (QUERIES, width): a block of queries */
    float *q_t, *dy_t, *dq_t;   /* (width, QUERIES): the same transposed, q times scale and log2(e); the gradient of q */
    float *w, *ds;              /* (KEYS, QUERIES): weights, gradient of the scores */
    float *keep;                /* (KEYS, PANEL) */
    float *log_sum, *all;       /* (QUERIES); all: dy y, what the gradients of a row's weights sum to */
};

/* The tasks of a call: task n is part n % parts of kv head n / parts. */
struct tasks {
    int64_t n, parts;
    int64_t slots;              /* sums of dk, dv: one per task, or per thread where parts is 1 */
};

static int64_t slot_floats(const struct flash *f) { return 2 * f->rows * f->width; }

static int64_t backward_floats(const struct flash *f)
{
    return up_to(2 * f->rows * f->width + 5 * f->width * QUERIES + 2 * KEYS * QUERIES + KEYS * PANEL + 2 * QUERIES, 16);
}

static struct backward backward_of(const struct flash *f, float *m)
{
    struct backward w;
    w.k = m;
    w.v = w.k + f->rows * f->width;
    w.q = w.v + f->rows * f->width;
    w.dy = w.q + f->width * QUERIES;
    w.q_t = w.dy + f->width * QUERIES;
    w.dy_t = w.q_t + f->width * QUERIES;
    w.dq_t = w.dy_t + f->width * QUERIES;
    w.w = w.dq_t + f->width * QUERIES;
    w.ds = w.w + KEYS * QUERIES;
    w.keep = w.ds + KEYS * QUERIES;
    w.log_sum = w.keep + KEYS * PANEL;
    w.all = w.log_sum + QUERIES;
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

/* Fills the block of queries [first, first + rows) of a head. */
static void load_queries(const struct flash *f, struct backward *w, const struct kernel_call *c, int64_t head, int64_t first,
                         int64_t rows)
{
    const int64_t stride = f->heads * f->size;
    const int64_t at = (head / f->heads * f->seq + first) * stride + head % f->heads * f->size;
    const float *dy = (const float *)c->in[0] + at, *y = (const float *)c->in[4] + at;
    const float *log_sums = (const float *)c->in[5] + head * f->seq + first;
    if (rows % PANEL) {
        memset(w->q_t, 0, (size_t)(f->width * QUERIES) * sizeof *w->q_t);
        memset(w->dy_t, 0, (size_t)(f->width * QUERIES) * sizeof *w->dy_t);
        memset(w->log_sum, 0, QUERIES * sizeof *w->log_sum);
        memset(w->all, 0, QUERIES * sizeof *w->all);
    }
    expect_rows(y, stride, rows, f->size);
    TUNED(flash_take)(w->q_t, QUERIES, w->q, f->width, f->q + at, stride, rows, f->size, f->scale * LOG2_E);
    TUNED(flash_take)(w->dy_t, QUERIES, w->dy, f->width, dy, stride, rows, f->size, 1);
    memset(w->dq_t, 0, (size_t)(f->width * QUERIES) * sizeof *w->dq_t);
    for (int64_t i = 0; i < rows; i++) {
        w->log_sum[i] = log_sums[i] * LOG2_E;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t e = 0; e < f->size; e++)
            sum += dy[i * stride + e] * y[i * stride + e];
        w->all[i] = sum;
    }
}

/* Scores become weights, the gradients of weights those of scores: (keys, PANEL) of rows of QUERIES. With dropout, weights
 * that were dropped have no gradient and gave nothing; keep is NULL without. */
KERNEL void grad_of_scores(float *w, float *ds, int64_t keys, const float *log_sum, const float *all_of, const float *keep)
{
    const vec shift[2] = {load(log_sum), load(log_sum + LANES)}, whole[2] = {load(all_of), load(all_of + LANES)};
    for (int64_t j = 0; j < keys; j += 2) {             /* TILE is even, and rows are whole tiles; see mask_scores */
        vec e[4];
        UNROLL(4)
        for (int i = 0; i < 4; i++)
            e[i] = exp2_low(load(w + (j + i / 2) * QUERIES + i % 2 * LANES) - shift[i % 2]);
        UNROLL(4)
        for (int i = 0; i < 4; i++) {
            const int64_t at = (j + i / 2) * QUERIES + i % 2 * LANES;
            vec given = e[i], dw = load(ds + at);
            if (keep) {
                const vec m = load(keep + j * PANEL + i * LANES);
                given *= m;
                dw *= m;
            }
            store(w + at, given);
            store(ds + at, e[i] * (dw - whole[i % 2]));
        }
    }
}

/* Weights and gradients of scores for one panel, and its part of dq. */
static void panel_grad(const struct flash *f, struct backward *w, const struct sight *g, int64_t at)
{
    const float *k = w->k + g->key * f->width, *v = w->v + g->key * f->width;
    rows_times_panel(w->w + at, QUERIES, g->keys, f->size, k, f->width, w->q_t + at, QUERIES);
    rows_times_panel(w->ds + at, QUERIES, g->keys, f->size, v, f->width, w->dy_t + at, QUERIES);
    mask_scores(w->w + at, QUERIES, f, g);
    if (f->prob > 0) {
        TUNED(flash_keep)(w->keep, f, g);
        grad_of_scores(w->w + at, w->ds + at, g->keys, w->log_sum + at, w->all + at, w->keep);
    } else {
        grad_of_scores(w->w + at, w->ds + at, g->keys, w->log_sum + at, w->all + at, NULL);
    }
    columns_times_panel(w->dq_t + at, QUERIES, all(1), all(1), f->size, g->keys, k, f->width, w->ds + at, QUERIES);
}

/* c (TILE, width) += a (TILE, depth) b (depth, width), panel by panel. */
KERNEL void add_rows(float *c, const struct flash *f, int64_t depth, const float *a, const float *b)
{
    for (int64_t e = 0; e < f->size; e += PANEL) {
        vec x[TILE], y[TILE];
        product(x, y, depth, a, QUERIES, 1, b + e, f->width);
        UNROLL(8)
        for (int i = 0; i < TILE; i++) {
            float *to = c + i * f->width + e;
            store(to, load(to) + x[i]);
            store(to + LANES, load(to + LANES) + y[i]);
        }
    }
}

/* What a block of queries gives to a block of keys: dv += w^T dy, dk += ds^T q, from the first panel that sees the keys. */
static void keys_grad(const struct flash *f, struct backward *w, int64_t first, int64_t rows, int64_t key, float *dk, float *dv)
{
    for (int64_t j = 0; j < least(KEYS, f->seq - key); j += TILE) {
        const int64_t ahead = key + j - first;
        const int64_t from = f->causal && ahead > 0 ? ahead / PANEL * PANEL : 0, to = (key + j) * f->width;
        if (from >= rows)
            break;
        add_rows(dv + to, f, rows - from, w->w + j * QUERIES + from, w->dy + from * f->width);
        add_rows(dk + to, f, rows - from, w->ds + j * QUERIES + from, w->q + from * f->width);
    }
}

static void block_grad(const struct flash *f, struct backward *w, const struct kernel_call *c, int64_t head, int64_t first,
                       float *dk, float *dv)
{
    const int64_t rows = least(QUERIES, f->seq - first), stride = f->heads * f->size;
    float *dq = (float *)c->out[0] + (head / f->heads * f->seq + first) * stride + head % f->heads * f->size;
    load_queries(f, w, c, head, first, rows);
    expect_rows(dq, stride, rows, f->size);
    for (int64_t key = 0; key < (f->causal ? first + rows : f->seq); key += KEYS) {
        for (int64_t i = 0; i < rows; i += PANEL) {
            const struct sight g = sight_of(f, head, first + i, key);
            if (g.keys > 0)
                panel_grad(f, w, &g, i);
        }
        keys_grad(f, w, first, rows, key, dk, dv);
    }
    TUNED(flash_transpose)(dq, stride, w->dq_t, QUERIES, f->size, rows, f->scale);
}

/* Blocks of the group's queries go to the parts there and back, so that dear and cheap ones mix. */
static bool is_mine(int64_t block, int64_t part, int64_t parts)
{
    const int64_t place = block % parts;
    return (block / parts % 2 ? parts - 1 - place : place) == part;
}

static void run_task(const struct flash *f, struct backward *w, const struct kernel_call *c, int64_t kv_head, int64_t part,
                     int64_t parts, float *slot)
{
    const int64_t b = kv_head / f->kv_heads, kv = kv_head % f->kv_heads, blocks = blocks_of(f);
    const int64_t stride = f->kv_heads * f->size, at = b * f->seq * stride + kv * f->size;
    TUNED(flash_copy)(w->k, f->width, f->rows, f->k + at, stride, f->seq, f->size);
    TUNED(flash_copy)(w->v, f->width, f->rows, f->v + at, stride, f->seq, f->size);
    memset(slot, 0, (size_t)slot_floats(f) * sizeof *slot);
    for (int64_t n = 0; n < f->group * blocks; n++)
        if (is_mine(n, part, parts))
            block_grad(f, w, c, b * f->heads + kv * f->group + n / blocks, n % blocks * QUERIES, slot,
                       slot + f->rows * f->width);
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
        for (int64_t part = 0; part < parts; part++) {
            const float *k = slot + part * slot_floats(f) + j * f->width, *v = k + f->rows * f->width;
            for (int64_t e = 0; e < f->size; e++) {
                dk[e] = (part ? dk[e] : 0) + k[e] * f->scale;
                dv[e] = (part ? dv[e] : 0) + v[e];
            }
        }
    }
}

void TUNED(flash_grad)(const struct kernel_call *c, const struct kernel_thread *t)
{
    const struct flash f = TUNED(flash_of)(c->program, c->op, c->in);
    const struct tasks tasks = tasks_of(&f, t->count);
    struct backward w = backward_of(&f, (float *)c->scratch + t->index * backward_floats(&f));
    float *slots = (float *)c->scratch + t->count * backward_floats(&f);
    const struct span mine = my_rows(t, tasks.n);
    for (int64_t n = mine.lo; n < mine.hi; n++) {
        float *slot = slots + (tasks.parts > 1 ? n : t->index) * slot_floats(&f);
        run_task(&f, &w, c, n / tasks.parts, n % tasks.parts, tasks.parts, slot);
        if (tasks.parts == 1)
            write_rows(&f, c, n, 0, f.seq, slot, 1);
    }
    if (tasks.parts == 1)
        return;
    team_barrier(t->team);
    const struct span rows = my_rows(t, f.batch * f.kv_heads * f.seq);
    for (int64_t r = rows.lo; r < rows.hi; r++)
        write_rows(&f, c, r / f.seq, r % f.seq, r % f.seq + 1, slots + r / f.seq * tasks.parts * slot_floats(&f), tasks.parts);
}

size_t TUNED(flash_grad_scratch)(const struct program *p, const struct op *op, int threads)
{
    const struct flash f = TUNED(flash_of)(p, op, NULL);
    return (size_t)(threads * backward_floats(&f) + tasks_of(&f, threads).slots * slot_floats(&f)) * sizeof(float);
}
