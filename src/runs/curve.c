/* Bounded curves; see curve.h. Where a curve is full, neighbours become one. */
#include "runs/curve.h"

#include <math.h>
#include <stdlib.h>

#include "core/arena.h"

void curve_init(struct curve *c, int room)
{
    room = room < 2 ? 2 : room & ~1;
    *c = (struct curve){.point = xcalloc((size_t)room, sizeof *c->point), .room = room, .each = 1};
}

void curve_release(struct curve *c)
{
    free(c->point);
    *c = (struct curve){0};
}

/* The mean of x over n and y over m; what is not known does not count. */
static double mean(double x, double n, double y, double m)
{
    return !isfinite(x) || n <= 0 ? y : !isfinite(y) || m <= 0 ? x : x * (n / (n + m)) + y * (m / (n + m));
}

static void join(struct curve_point *a, const struct curve_point *b)
{
    a->step = b->step;
    a->tokens = b->tokens;
    a->seconds = b->seconds;
    a->loss = mean(a->loss, (double)a->finite, b->loss, (double)b->finite);
    a->low = fmin(a->low, b->low);
    a->high = fmax(a->high, b->high);
    a->steps_per_s = mean(a->steps_per_s, (double)a->lines, b->steps_per_s, (double)b->lines);
    a->tokens_per_s = mean(a->tokens_per_s, (double)a->lines, b->tokens_per_s, (double)b->lines);
    a->memory_bytes = fmax(a->memory_bytes, b->memory_bytes);
    a->lines += b->lines;
    a->finite += b->finite;
}

static void halve(struct curve *c)
{
    for (int i = 0; i < c->n / 2; i++) {
        c->point[i] = c->point[2 * i];
        join(&c->point[i], &c->point[2 * i + 1]);
    }
    c->n /= 2;
    c->each *= 2;
}

void curve_add(struct curve *c, struct curve_point line)
{
    line.lines = 1;
    line.finite = isfinite(line.loss);
    line.low = line.high = line.loss = line.finite ? line.loss : NAN;
    c->lines++;
    if (c->n && c->point[c->n - 1].lines < c->each) {
        join(&c->point[c->n - 1], &line);
        return;
    }
    if (c->n == c->room)
        halve(c);
    c->point[c->n++] = line;
}
