/* Draws tokens: temperature, then top-k, then top-p. */
#include "train/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/arena.h"

void sampler_init(struct sampler *s, double temperature, int64_t top_k, double top_p, int32_t n)
{
    *s = (struct sampler){temperature, top_k, top_p, n, xcalloc((size_t)n, sizeof *s->list), xcalloc((size_t)n, sizeof *s->weights)};
}

void sampler_release(struct sampler *s)
{
    free(s->list);
    free(s->weights);
    *s = (struct sampler){.list = NULL};
}

static int32_t likeliest(const float *logits, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static bool is_likelier(struct candidate a, struct candidate b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

static int by_likelihood(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return is_likelier(*x, *y) ? -1 : is_likelier(*y, *x);
}

static int by_id(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static void swap(struct candidate *a, struct candidate *b)
{
    const struct candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* The k likeliest of [0, n) come first, in any order: parted around one in the middle until that is the k-th. */
static void part(struct candidate *list, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const struct candidate middle = list[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (is_likelier(list[i], middle))
                i++;
            while (is_likelier(middle, list[j]))
                j--;
            if (i <= j)
                swap(&list[i++], &list[j--]);
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            return;
    }
}

/* Weights of the first n of the list, relative to the likeliest; returns their sum. */
static double weigh(struct sampler *s, int64_t n, float best)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += s->weights[i] = exp(((double)s->list[i].logit - best) / s->temperature);
    return sum;
}

/* Leaves those at the front that are likely enough to be among the likeliest that have top_p together: all others have less than the rest
 * together. Returns how many; weights do not belong to the list any more. */
static int64_t leave_unlikely_out(struct sampler *s, int64_t n, double sum)
{
    const double least = (1 - s->top_p) * sum / (double)n;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (s->weights[i] >= least)
            s->list[kept++] = s->list[i];
    return kept;
}

/* The likeliest of the first n that have top_p together, at the front; returns how many. */
static int64_t cut_by_probability(struct sampler *s, int64_t n, float best)
{
    const double sum = weigh(s, n, best);
    const int64_t some = leave_unlikely_out(s, n, sum);
    qsort(s->list, (size_t)some, sizeof *s->list, by_likelihood);
    weigh(s, some, best);
    double has = 0;
    for (int64_t i = 0; i < some; i++) {
        has += s->weights[i];
        if (has >= s->top_p * sum)
            return i + 1;
    }
    return some;
}

/* Those that can be drawn, by id, at the front; returns how many. */
static int64_t choose(struct sampler *s, float best)
{
    int64_t n = s->n;
    const bool counted = s->top_k > 0 && s->top_k < n, cut = s->top_p < 1;
    if (counted) {
        part(s->list, n, s->top_k);
        n = s->top_k;
        qsort(s->list, (size_t)n, sizeof *s->list, by_id);      /* sums are then the same whatever was the order */
    }
    if (cut) {
        n = cut_by_probability(s, n, best);
        qsort(s->list, (size_t)n, sizeof *s->list, by_id);
    }
    return n;
}

int32_t sampler_draw(struct sampler *s, const float *logits, double u)
{
    const int32_t best = likeliest(logits, s->n);
    if (s->temperature <= 0)
        return best;
    for (int32_t i = 0; i < s->n; i++)
        s->list[i] = (struct candidate){logits[i], i};
    const int64_t n = choose(s, logits[best]);
    const double sum = weigh(s, n, logits[best]);
    double at = 0;
    for (int64_t i = 0; i < n; i++) {
        at += s->weights[i];
        if (u * sum < at)
            return s->list[i].id;
    }
    return best;
}

double sampler_logprob(const float *logits, int32_t n, int32_t id)
{
    const double best = logits[likeliest(logits, n)];
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += exp(logits[i] - best);
    return logits[id] - best - log(sum);
}
