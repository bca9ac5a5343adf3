/* Tuned: a chunk of the loss of a linear head over panels. Threads divide its rows and words as a grid: each finds powers of its own block of logits, and
 * what they add to dx; then all sum up, a few rows each, what blocks side by side have found; and then each has its words of dw.
 *
 * Cut by words, a thread has its words of w packed for all rows, and its powers and its words of dw are near it all the time; but each
 * reads all of x, and what it adds to dx another one must fetch. Cut by rows it is the other way round. */
#include <math.h>

#include "ops/cpu/tuned/linear_loss.h"

/* ---- how it is cut ---- */

enum { ADDS_PER_FETCH = 20 };           /* multiply-adds that take as long as fetching a number that another core made */

/* Of a thread: w comes once, for both products, or with every chunk; x is read, what is added to dx written and read by another; powers come from other
 * threads where words are not its own in the first place. */
static double grid_cost(const struct sizes *s, int rows, int columns)
{
    const int64_t words = up_to((s->vocab + columns - 1) / columns, PANEL), times = TUNED(panels_stay)(words, s->width) ? 1 : (s->rows + s->chunk - 1) / s->chunk;
    const double chunks = (double)times, d = (double)s->width, m = (double)up_to((s->rows + rows - 1) / rows, ROW_UNIT), n = (double)words;
    const double fetched = d * (2 * n * chunks + (columns > 1 ? 3 : 1) * m) + (rows > 1 ? m * n : 0);
    return 2 * d * m * n / ADDS_PER_FETCH + fetched;
}

struct blocks TUNED(loss_grid)(const struct sizes *s, int threads)
{
    struct blocks best = {threads, 1, 1};
    double least_cost = grid_cost(s, threads, 1);
    for (int columns = 2; columns <= threads && columns <= (s->vocab + PANEL - 1) / PANEL; columns++) {
        const double cost = threads % columns ? least_cost : grid_cost(s, threads / columns, columns);
        if (cost < least_cost) {
            least_cost = cost;
            best = (struct blocks){threads / columns, columns, 1};
        }
    }
    return best;
}

/* ---- what a thread does ---- */

static float dot(const float *x, const float *y, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* What the logits of my share of all rows are relative to. */
static void find_bases(const struct work *w)
{
    const struct panels *p = &w->m.panels;
    const float *x = w->c->in[0], *words = w->c->in[1];
    const struct span mine = my_rows(w->t, up_to(w->count, ROW_UNIT));
    for (int64_t i = mine.lo; i < mine.hi; i++)
        p->base[i] = i >= w->count ? 0 : LOG2_E * dot(x + row_of(w, i) * p->width, words + target_of(w, i) * p->width, p->width);
}

/* A row of x times a factor, as dw's product wants it. */
static void scale_row(const struct panels *p, int64_t row, const float *x, float factor)
{
    for (int64_t f = 0; f < p->width; f += X_PANEL) {
        float *to = p->x_dw + f * p->rows + row * X_PANEL;
        const int64_t n = least(X_PANEL, p->width - f);
        for (int64_t j = 0; j < X_PANEL; j++)
            to[j] = j < n ? x[f + j] * factor : 0;
    }
}

/* The sum of a row's powers. */
static float row_sum(const struct panels *p, int64_t i)
{
    float sum = 0;
    for (int c = 0; c < p->grid.columns; c++)
        sum += lanes_sum(load(p->sums + (c * p->rows + i) * LANES));
    return sum;
}

/* dx of a row: what all columns have found, less its target's word. */
static void sum_row(const struct panels *p, int64_t i, const float *word, float sum, float factor, float *to)
{
    const int64_t width = p->width, next = p->rows * width;
    const float *dx = p->dx + i * width;
    INDEPENDENT
    for (int64_t j = 0; j < width; j++)
        to[j] = dx[j] - sum * word[j];
    for (int c = 1; c < p->grid.columns; c++)
        INDEPENDENT
        for (int64_t j = 0; j < width; j++)
            to[j] += dx[c * next + j];
    INDEPENDENT
    for (int64_t j = 0; j < width; j++)
        to[j] *= factor;
}

/* What a row's powers and their sum give: its loss, its gradients but dw. */
static void finish_row(const struct work *w, int64_t i)
{
    const struct panels *p = &w->m.panels;
    const int64_t target = target_of(w, i), width = w->s.width;
    const float sum = row_sum(p, i), factor = 1 / (sum * (float)w->count);
    float *z = panels_z(p, target, i) + target % PANEL;
    w->m.losses[i] = log2f(sum / *z) * LN_2;
    if (!w->gradients)
        return;
    *z -= sum;
    scale_row(p, i, w->x + i * width, factor);
    sum_row(p, i, (const float *)w->c->in[1] + target * width, sum, factor, (float *)w->c->out[2] + row_of(w, i) * width);
}

/* My rows and words of the chunk, and where its column has its place. */
static struct panels_part my_part(const struct work *w)
{
    const struct panels *p = &w->m.panels;
    const int row = w->t->index % p->grid.rows, column = w->t->index / p->grid.rows;
    const struct span rows = team_span(w->n, ROW_UNIT, row, p->grid.rows);
    return (struct panels_part){
        .rows = {rows.lo, up_to(rows.hi, ROW_UNIT)}, .words = team_span(p->words, PANEL, column, p->grid.columns), .base = p->base + w->first,
        .sums = p->sums + column * p->rows * LANES, .dx = w->gradients ? p->dx + column * p->rows * p->width : NULL,
        .block = p->block + PANELS_KEEP * column * p->rows * PANEL_WORDS, .x = p->x + PANELS_KEEP * column * panels_x_size(p), .first = w->first == 0};
}

static void prepare(const struct work *w, struct span words)
{
    find_bases(w);
    if (PANELS_KEEP)
        TUNED(panels_take_words)(&w->m.panels, w->c->in[1], words);
    team_barrier(w->t->team);
}

static void finish_rows(const struct work *w)
{
    const struct span mine = my_rows(w->t, w->n);
    team_barrier(w->t->team);
    for (int64_t i = mine.lo; i < mine.hi; i++)
        finish_row(w, i);
    team_barrier(w->t->team);
}

/* A thread's words of dw, in pieces. */
struct gradient {
    const struct work *w;
    struct span words;
    int64_t each;
};

static void gradient_piece(void *argument, int piece, int helper)
{
    (void)helper;
    const struct gradient *g = argument;
    const struct span words = {g->words.lo + piece * g->each, least(g->words.lo + (piece + 1) * g->each, g->words.hi)};
    TUNED(panels_words_gradient)(&g->w->m.panels, words, g->w->n, g->w->c->out[3], g->w->first > 0);
}

static void words_gradient(const struct work *w, struct span words)
{
    const int64_t n = words.hi - words.lo, panels = piece_units(n / PANEL, PANEL * w->n * w->s.width);
    struct gradient g = {w, words, panels * PANEL > WORDS_EACH ? panels * PANEL : WORDS_EACH};
    team_pieces(gradient_piece, &g, piece_count(n, g.each));
}

bool TUNED(loss_by_panels)(struct work *w)
{
    const struct panels *p = &w->m.panels;
    const struct span words = team_span(p->words, PANEL, w->t->index, w->t->count);
    const struct panels_part mine = my_part(w);
    if (w->first == 0)
        prepare(w, words);
    if (mine.rows.lo < mine.rows.hi)
        TUNED(panels_rows)(p, &mine, w->x, w->c->in[1], w->n, LOG2_E);
    finish_rows(w);
    w->panels = in_range(w);
    if (!w->panels)
        team_barrier(w->t->team);               /* the others have seen the losses, too */
    else if (w->gradients)
        words_gradient(w, words);
    return w->panels;
}
