/* Built-in walks on a grid in the dark: samples of two regions, of different lengths, with real-valued tokens.
 *
 * A grid of 9 x 9 cells has a goal that is not seen; a step onto it, or staying there, has the reward 1. A stream is a learner at one goal:
 * regions of `region` steps, and in region r of R it walks straight to the goal with probability r / R, else anywhere. A sample is what
 * was seen before a choice:
 *
 *     <start> one whole region <end> <start> the first 0 ... region - 1 steps of the next one, the cell it is in now
 *
 * and its one target, at the last of these, is the action that the stream takes there. Everything is a pure function of the number of the
 * sample; goals of validation are in no sample of training. */
#include <string.h>

#include "core/rng.h"
#include "data/data_int.h"
#include "data/permute.h"

enum { STREAMS = 100, STREAM_STEPS = 1000, EPISODE = 20, STRIDE = 32, FIRST_GOAL = 40 };        /* STRIDE: no divisor of the cells */
enum action { STAY, UP, DOWN, LEFT, RIGHT };
enum token_type { TYPE_STEP, TYPE_START, TYPE_END };
enum { ID_NONE = -1, ID_START = 0, ID_END = 1, ID_CELL = 2 };

static int64_t regions_of(const struct dataset *d)
{
    const int64_t n = STREAM_STEPS / d->region;
    return n > 2 ? n : 2;
}

/* Which sample it is. */
struct walk {
    int64_t goal;           /* a cell */
    int64_t stream, region; /* the region that the choice is in, from 1 */
    int64_t steps;          /* of it that were seen */
};

static int64_t per_goal(const struct dataset *d) { return STREAMS * (regions_of(d) - 1) * d->region; }

/* The first goals are those of training. Neighbours in the order are far apart on the grid. */
static int64_t goal_at(int64_t i) { return (FIRST_GOAL + i * STRIDE) % REGION_CELLS; }

/* Training has an order of its own for every epoch (dataset.c); validation has this one, so that few samples are of all kinds. */
static struct walk walk_of(const struct dataset *d, enum split split, int64_t i)
{
    if (split == SPLIT_VAL)
        i = (int64_t)permute_index(d->region_key, 0, (uint64_t)d->parts[split].samples, (uint64_t)i);
    const int64_t goals = d->parts[SPLIT_TRAIN].samples / per_goal(d), goal = i / per_goal(d), later = regions_of(d) - 1;
    return (struct walk){.goal = goal_at(split == SPLIT_TRAIN ? goal : goals + goal), .steps = i % d->region,
                         .region = 1 + i / d->region % later, .stream = i / d->region / later % STREAMS};
}

static enum action straight(int64_t cell, int64_t goal)
{
    const int64_t row = cell / REGION_SIDE, column = cell % REGION_SIDE, to_row = goal / REGION_SIDE, to_column = goal % REGION_SIDE;
    return row > to_row ? UP : row < to_row ? DOWN : column > to_column ? LEFT : column < to_column ? RIGHT : STAY;
}

static int64_t move(int64_t cell, enum action a)
{
    const int64_t row = cell / REGION_SIDE, column = cell % REGION_SIDE;
    switch (a) {
    case UP: return row > 0 ? cell - REGION_SIDE : cell;
    case DOWN: return row < REGION_SIDE - 1 ? cell + REGION_SIDE : cell;
    case LEFT: return column > 0 ? cell - 1 : cell;
    case RIGHT: return column < REGION_SIDE - 1 ? cell + 1 : cell;
    case STAY: break;
    }
    return cell;
}

/* What a stream has drawn for step `step` of region `region`. */
static struct rng_block drawn(const struct dataset *d, const struct walk *w, int64_t region, int64_t step)
{
    const uint64_t stream = (uint64_t)(w->goal * STREAMS + w->stream);
    return rng_block(d->region_key, stream, (uint64_t)(region * d->region + step));
}

static enum action chosen(const struct dataset *d, const struct walk *w, int64_t region, struct rng_block b, int64_t cell)
{
    const uint64_t straight_below = ((uint64_t)region << 32) / (uint64_t)regions_of(d);
    return b.x[0] < straight_below ? straight(cell, w->goal) : (enum action)((uint64_t)b.x[1] * REGION_ACTIONS >> 32);
}

/* An episode begins in any cell. */
static int64_t cell_before(int64_t cell, int64_t step, struct rng_block b)
{
    return step % EPISODE ? cell : (int64_t)((uint64_t)b.x[2] * REGION_CELLS >> 32);
}

static void put_cell(float *to, int64_t cell)
{
    const int64_t row = cell / REGION_SIDE, column = cell % REGION_SIDE;
    to[0] = (float)row / (REGION_SIDE - 1);
    to[1] = (float)column / (REGION_SIDE - 1);
}

/* A transition: the cell, the action, the reward, the cell after it. */
static void put_features(float *to, int64_t cell, enum action a, int64_t next, int64_t goal)
{
    put_cell(to, cell);
    to[2 + a] = 1;
    to[7] = next == goal;
    put_cell(to + 8, next);
}

static void put_token(const struct sample *s, int64_t at, int32_t id, enum token_type type)
{
    s->tokens[at] = id;
    if (s->segments)
        s->segments[at] = (int32_t)type;
}

/* The first `steps` steps of a region at token `at` and those after it; returns the cell where the next one begins. *next gets what is
 * drawn for that. */
static int64_t put_region(const struct dataset *d, const struct walk *w, int64_t region, int64_t steps, const struct sample *s, int64_t at,
                          struct rng_block *next)
{
    struct rng_block b = drawn(d, w, region, 0);
    int64_t cell = cell_before(0, 0, b);
    for (int64_t i = 0; i < steps; i++) {
        const enum action a = chosen(d, w, region, b, cell);
        const int64_t after = move(cell, a);
        put_token(s, at + i, ID_NONE, TYPE_STEP);
        if (s->features)
            put_features(s->features + (at + i) * REGION_FEATURES, cell, a, after, w->goal);
        b = drawn(d, w, region, i + 1);
        cell = cell_before(after, i + 1, b);
    }
    *next = b;
    return cell;
}

/* Padding has no id, no features and no target. */
static void clear(const struct dataset *d, const struct sample *s)
{
    const size_t n = (size_t)d->seq;
    memset(s->tokens, 0xff, n * sizeof *s->tokens);
    memset(s->targets, 0xff, n * sizeof *s->targets);
    if (s->types)
        memset(s->types, 0xff, n * sizeof *s->types);
    if (s->segments)
        memset(s->segments, 0, n * sizeof *s->segments);
    if (s->features)
        memset(s->features, 0, n * REGION_FEATURES * sizeof *s->features);
}

void regions_sample(const struct dataset *d, enum split split, int64_t i, struct sample *s)
{
    const struct walk w = walk_of(d, split, i);
    const int64_t now = d->region + 3 + w.steps;
    struct rng_block next;
    clear(d, s);
    put_token(s, 0, ID_START, TYPE_START);
    put_region(d, &w, w.region - 1, d->region, s, 1, &next);
    put_token(s, d->region + 1, ID_END, TYPE_END);
    put_token(s, d->region + 2, ID_START, TYPE_START);
    const int64_t cell = put_region(d, &w, w.region, w.steps, s, d->region + 3, &next);
    put_token(s, now, (int32_t)(ID_CELL + cell), TYPE_STEP);
    s->targets[now] = (int32_t)chosen(d, &w, w.region, next, cell);
    if (s->types)
        s->types[now] = TYPE_STEP;
    s->length = now + 1;
}

int64_t regions_length(const struct dataset *d, int64_t i) { return d->region + 4 + i % d->region; }

enum status source_regions(struct dataset *d, const struct config *c, const struct tokenizer *given, struct error *err)
{
    (void)given;
    const int64_t share = (int64_t)(c->data.val_fraction * REGION_CELLS), val = c->data.val_fraction > 0 && share < 1 ? 1 : share;
    d->region = c->data.region;
    d->region_key = rng_u64(0, rng_stream_of("data.regions"), 0);
    d->vocab = REGION_IDS;
    for (int split = 0; split < 2; split++) {
        struct part *p = &d->parts[split];
        p->samples = (split == SPLIT_TRAIN ? REGION_CELLS - val : val) * per_goal(d);
        p->tokens = p->samples / 2 * (2 * d->region + 8 + d->region - 1);       /* steps of the second region: 0 to region - 1 alike */
    }
    return tokenizer_init(&d->tokenizer, TOKENIZER_NONE, NULL, REGION_IDS, err);
}
