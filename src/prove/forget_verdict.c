/* Who forgets less at equal learning. Two configs are compared seed by seed: the same seed gives them the same data in the same
 * order, and equal models the same first weights, so that differences within a seed scatter less than the seeds do. docs/k1.md has
 * the rule in words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "prove/forget.h"

static struct forget_difference difference(const double *values, int n)
{
    const struct forget_spread s = forget_spread(values, n);
    const double half = s.n > 1 ? stats_student(s.n - 1, 0.975) * s.sd / sqrt(s.n) : NAN;
    return (struct forget_difference){s.mean, s.mean - half, s.mean + half, s.n};
}

/* -1: below zero outside the spread, 1: above, 0: neither. */
static int side(const struct forget_difference *d) { return d->high < 0 ? -1 : d->low > 0 ? 1 : 0; }

/* ---- points of a config: one per seed ---- */

struct points {
    double x[FORGET_SEEDS], y[FORGET_SEEDS];        /* new_loss and forgotten; NAN: no such run */
};

static void points_of(const struct forget *f, int config, struct points *p)
{
    const struct forget_config *c = &f->configs[config];
    for (int i = 0; i < FORGET_SEEDS; i++)
        p->x[i] = p->y[i] = NAN;
    for (int i = 0; i < c->n_runs; i++) {
        const struct forget_numbers n = forget_numbers(&c->runs[i]);
        const int64_t seed = c->runs[i].seed;
        if (seed < 1 || seed > FORGET_SEEDS)
            continue;
        p->x[seed - 1] = n.new_loss;
        p->y[seed - 1] = n.forgotten;
    }
}

static struct forget_difference less(const double *a, const double *b)
{
    double d[FORGET_SEEDS];
    for (int i = 0; i < FORGET_SEEDS; i++)
        d[i] = a[i] - b[i];
    return difference(d, FORGET_SEEDS);
}

/* Lower is better in both. */
static enum forget_outcome outcome_of(int learning, int forgetting)
{
    if (learning * forgetting < 0)
        return FORGET_NO_OVERLAP;           /* one learned more and forgot more */
    const int sum = learning + forgetting;
    return sum < 0 ? FORGET_BEATS : sum > 0 ? FORGET_WORSE : FORGET_TIES;
}

struct forget_comparison forget_compare(const struct forget *f, int a, int b)
{
    struct points p, q;
    points_of(f, a, &p);
    points_of(f, b, &q);
    struct forget_comparison c = {.a = a, .b = b, .new_loss = less(p.x, q.x), .forgotten = less(p.y, q.y)};
    c.outcome = c.forgotten.n < 2 ? FORGET_TOO_FEW : outcome_of(side(&c.new_loss), side(&c.forgotten));
    return c;
}

const char *forget_outcome_word(enum forget_outcome o)
{
    static const char *const words[] = {[FORGET_BEATS] = "beats", [FORGET_TIES] = "ties", [FORGET_WORSE] = "worse",
                                        [FORGET_NO_OVERLAP] = "no overlap", [FORGET_TOO_FEW] = "too few seeds"};
    return words[o];
}

const char *forget_answer_word(enum forget_answer a)
{
    static const char *const words[] = {[ANSWER_YES] = "yes", [ANSWER_NOT] = "no", [ANSWER_UNSAID] = "cannot be said"};
    return words[a];
}

/* ---- the line from random choice to all nodes ---- */

/* Random choice of all nodes is all of them, so both are ends of one family: choosing more or fewer at random. What the config
 * forgets is compared with the mixture of both ends that learns as much as it does, if there is one. */
static void judge_line(const struct forget *f, struct forget_verdict *v)
{
    struct points g, r, a;
    double rest[FORGET_SEEDS];
    if (v->random < 0 || v->all < 0)
        return;
    points_of(f, v->gradient, &g);
    points_of(f, v->random, &r);
    points_of(f, v->all, &a);
    const struct forget_difference whole = less(a.x, r.x), part = less(g.x, r.x);
    v->line_part = part.mean / whole.mean;
    v->has_line = whole.n > 1 && part.n > 1 && side(&whole) && v->line_part >= 0 && v->line_part <= 1;
    if (!v->has_line)
        return;
    for (int i = 0; i < FORGET_SEEDS; i++)
        rest[i] = g.y[i] - (r.y[i] + v->line_part * (a.y[i] - r.y[i]));
    v->line = difference(rest, FORGET_SEEDS);
    v->line_outcome = v->line.n < 2 ? FORGET_TOO_FEW : outcome_of(0, side(&v->line));
    v->has_line = v->line.n > 1;
}

/* ---- the answer ---- */

static enum forget_answer answer_of(const struct forget_verdict *v, int rival, enum forget_outcome o)
{
    if (rival < 0 || o == FORGET_TOO_FEW)
        return ANSWER_UNSAID;
    if (o == FORGET_NO_OVERLAP)
        return !v->has_line ? ANSWER_UNSAID : v->line_outcome == FORGET_BEATS ? ANSWER_YES : ANSWER_NOT;
    return o == FORGET_BEATS ? ANSWER_YES : ANSWER_NOT;
}

static const char *tells(const struct forget_difference *d) { return side(d) ? "" : ", which is within the spread"; }

static void put_difference(FILE *to, const char *more, const char *fewer, const struct forget_difference *d)
{
    fprintf(to, "%s by %.3f nats (%+.3f to %+.3f)%s", d->mean > 0 ? more : fewer, fabs(d->mean), d->low, d->high, tells(d));
}

static void put_both(FILE *to, const struct forget_comparison *c)
{
    put_difference(to, "its loss on the new domains is higher", "its loss on the new domains is lower", &c->new_loss);
    put_difference(to, ", and it forgot more", ", and it forgot less", &c->forgotten);
    fprintf(to, ", over %d seeds", c->forgotten.n);
}

static void put_line(FILE *to, const struct forget *f, const struct forget_verdict *v)
{
    if (!v->has_line) {
        fprintf(to, ": one learned more and forgot more, and no mixture of %s and %s learns as much as %s, so that nothing can be said at equal learning",
                v->random < 0 ? "random choice" : f->configs[v->random].name, v->all < 0 ? "all nodes" : f->configs[v->all].name,
                f->configs[v->gradient].name);
        return;
    }
    fprintf(to, ": one learned more and forgot more. At equal learning, on the line from %s to %s, ", f->configs[v->random].name,
            f->configs[v->all].name);
    put_difference(to, "it forgot more", "it forgot less", &v->line);
}

/* other: a config that chooses so, but is another one besides; -1: none. */
static void put_no_rival(FILE *to, const struct forget *f, int config, int other, const char *kind)
{
    const struct forget_config *c = &f->configs[config];
    fprintf(to, "there is no config that chooses %s", kind);
    if (other >= 0)
        fprintf(to, " and is the same otherwise (%s and %s: %s)", c->name, f->configs[other].name, c->unlike[other]);
    fprintf(to, ", so %s cannot be compared with that", c->name);
}

struct rival { int config, other; };

static void say(const struct forget *f, const struct forget_verdict *v, struct rival of, const char *kind, const struct forget_comparison *c,
                char out[FORGET_WORDS])
{
    const int rival = of.config;
    FILE *to = fmemopen(out, FORGET_WORDS, "w");
    if (!to) {
        *out = '\0';
        return;
    }
    const char *name = f->configs[v->gradient].name;
    if (rival < 0)
        put_no_rival(to, f, v->gradient, of.other, kind);
    else if (c->outcome == FORGET_TOO_FEW)
        fprintf(to, "%s and %s have %d seed%s in common; a spread needs 2 at least, and 3 are better", name, f->configs[rival].name,
                c->forgotten.n, c->forgotten.n == 1 ? "" : "s");
    else {
        fprintf(to, "%s against %s: ", name, f->configs[rival].name);
        put_both(to, c);
        if (c->outcome == FORGET_NO_OVERLAP)
            put_line(to, f, v);
    }
    fclose(to);
    out[FORGET_WORDS - 1] = '\0';
}

static bool same_tree(const struct forget_config *a, const struct forget_config *b)
{
    return a->levels == b->levels && !memcmp(a->tree, b->tree, (size_t)a->levels * sizeof *a->tree);
}

/* The first config that chooses so from the same tree, and is the same otherwise; `as_many`: as many nodes, and as often. */
static struct rival find_rival(const struct forget *f, const struct forget_config *c, enum forget_choice choice, bool as_many)
{
    struct rival r = {-1, -1};
    for (int i = 0; i < f->n_configs && r.config < 0; i++) {
        const struct forget_config *o = &f->configs[i];
        if (o->choice != choice || !same_tree(o, c) || (as_many && (o->k != c->k || o->every != c->every)))
            continue;
        if (!c->unlike[i])
            r.config = i;
        else if (r.other < 0)
            r.other = i;
    }
    return r;
}

static void judge_one(const struct forget *f, int config, struct forget_verdict *v)
{
    const struct forget_config *c = &f->configs[config];
    const struct rival random = find_rival(f, c, CHOICE_RANDOM, true), all = find_rival(f, c, CHOICE_ALL, false);
    *v = (struct forget_verdict){.gradient = config, .random = random.config, .all = all.config};
    if (v->random >= 0)
        v->by_random = forget_compare(f, config, v->random);
    if (v->all >= 0)
        v->by_all = forget_compare(f, config, v->all);
    judge_line(f, v);
    v->beats_random = answer_of(v, v->random, v->by_random.outcome);
    v->beats_all = answer_of(v, v->all, v->by_all.outcome);
    say(f, v, random, "as many nodes at random", &v->by_random, v->random_words);
    say(f, v, all, "all nodes", &v->by_all, v->all_words);
}

int forget_judge(const struct forget *f, struct forget_verdict *out, int room)
{
    int n = 0;
    for (int i = 0; i < f->n_configs && n < room; i++)
        if (f->configs[i].choice == CHOICE_GRADIENT)
            judge_one(f, i, &out[n++]);
    return n;
}

/* ---- one sentence ---- */

static int runs_done(const struct forget *f)
{
    int n = 0;
    for (int i = 0; i < f->n_configs; i++)
        for (int j = 0; j < f->configs[i].n_runs; j++)
            n += f->configs[i].runs[j].done;
    return n;
}

static const char *verb(enum forget_answer a)
{
    return a == ANSWER_YES ? "beats" : a == ANSWER_NOT ? "does not beat" : "cannot be compared with";
}

/* What every config says that chooses by gradient, or how many say so. */
static void say_answers(const struct forget_verdict *v, int n, char out[FORGET_WORDS])
{
    int same = 0, random = 0, all = 0;
    for (int i = 0; i < n; i++) {
        same += v[i].beats_random == v->beats_random && v[i].beats_all == v->beats_all;
        random += v[i].beats_random == ANSWER_YES;
        all += v[i].beats_all == ANSWER_YES;
    }
    if (same < n)
        snprintf(out, FORGET_WORDS, "At equal learning, of %d configs that choose nodes by gradient %d beat%s choosing as many at random, and %d choosing all", n, random,
                 random == 1 ? "s" : "", all);
    else if (v->beats_random == v->beats_all)
        snprintf(out, FORGET_WORDS, "At equal learning, choosing nodes by gradient %s choosing as many at random%s choosing all",
                 verb(v->beats_random), v->beats_random == ANSWER_YES ? ", and" : v->beats_random == ANSWER_NOT ? ", nor" : " or");
    else
        snprintf(out, FORGET_WORDS, "At equal learning, choosing nodes by gradient %s choosing as many at random, and %s choosing all",
                 verb(v->beats_random), verb(v->beats_all));
}

void forget_headline(const struct forget *f, char out[FORGET_WORDS])
{
    struct forget_verdict *v = xcalloc(FORGET_CONFIGS, sizeof *v);
    const int n = forget_judge(f, v, FORGET_CONFIGS);
    if (f->interrupted)
        snprintf(out, FORGET_WORDS, "Interrupted: %d of %lld runs are done", runs_done(f), (long long)(f->seeds * f->n_configs));
    else if (!n)
        snprintf(out, FORGET_WORDS, "What %d config%s learned and forgot; none of them chooses nodes by gradient", f->n_configs,
                 f->n_configs == 1 ? "" : "s");
    else
        say_answers(v, n, out);
    free(v);
}
