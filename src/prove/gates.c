/* The gates between two configs: one table. Each holds a value against its limit and says in a sentence what it saw; a value
 * that is not a number never passes, because every comparison with it is false. */
#include <math.h>
#include <string.h>

#include "prove/prove_int.h"

double prove_largest(double a, double b) { return isnan(a) || isnan(b) ? NAN : fmax(a, b); }

const char *prove_show_bytes(double bytes, char out[GATE_TEXT])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int i = 0;
    for (; bytes >= 999.5 && i < 4; i++)
        bytes /= 1000;
    snprintf(out, GATE_TEXT, "%.*f %s", i && bytes < 99.5 ? 2 : 0, bytes, units[i]);
    return out;
}

const char *prove_show_change(double part, char out[GATE_TEXT])
{
    snprintf(out, GATE_TEXT, "%+.*f %%", fabs(part) < 0.001 ? 4 : fabs(part) < 0.1 ? 2 : 1, part * 100);
    return out;
}

#define SHOW(field, ...) snprintf(g->field, sizeof g->field, __VA_ARGS__)

/* bf16 has a limit of its own: rounding operands to 8 bits puts gradients off by 0.3 % to 1.8 %, the more the deeper the model,
 * and losses by less than 0.01 % over 20 steps, for which the limit of f32 is wide enough. */
static void gradients(const struct evidence *e, struct gate *g)
{
    g->a = e->gradients.a_norm;
    g->b = e->gradients.b_norm;
    g->value = e->gradients.error;
    g->limit = e->bf16 ? e->limits->verify.gradients_bf16 : e->limits->verify.gradients;
    g->pass = g->value <= g->limit;
    SHOW(a_text, "norm %.4g", g->a);
    SHOW(b_text, "norm %.4g", g->b);
    SHOW(value_text, "error %.2g", g->value);
    SHOW(limit_text, "at most %.2g", g->limit);
    if (g->pass)
        SHOW(words, "the first gradients of all %d parameters agree; the largest relative error is %.2g, in %s, whose norms these are",
             e->gradients.parameters, g->value, e->gradients.worst);
    else
        SHOW(words, "the first gradient of %s is off by a relative error of %.2g", e->gradients.worst, g->value);
}

/* NAN when one of them is not finite: such losses are equal to nothing. */
static double relative(double a, double b)
{
    if (!isfinite(a) || !isfinite(b))
        return NAN;
    return a == b ? 0 : fabs(a - b) / fabs(a);
}

static void loss_curve(const struct evidence *e, struct gate *g)
{
    int64_t worst = 0;
    for (int64_t i = 0; i < e->steps && !isnan(g->value); i++) {
        const double now = relative(e->a.losses[i], e->b.losses[i]);
        if (now <= g->value)
            continue;
        g->value = now;
        worst = i;
    }
    g->a = e->a.losses[worst];
    g->b = e->b.losses[worst];
    g->limit = e->limits->verify.loss;
    g->pass = g->value <= g->limit;
    SHOW(a_text, "loss %.5g", g->a);
    SHOW(b_text, "loss %.5g", g->b);
    SHOW(value_text, "difference %.2g", g->value);
    SHOW(limit_text, "at most %.2g", g->limit);
    const char *many = e->steps == 1 ? "" : "s";
    if (g->value == 0)
        SHOW(words, "the losses of %lld step%s are equal", (long long)e->steps, many);
    else
        SHOW(words, "over %lld step%s the losses differ most at step %lld: %.7g in a and %.7g in b", (long long)e->steps, many,
             (long long)worst + 1, g->a, g->b);
}

static void validation(const struct evidence *e, struct gate *g)
{
    g->a = e->a.validation;
    g->b = e->b.validation;
    g->value = g->b / g->a - 1;
    g->limit = e->limits->verify.validation;
    g->judged = e->a.has_validation && e->b.has_validation;
    g->pass = !g->judged || g->value <= g->limit;
    SHOW(limit_text, "at most %+.2g %%", g->limit * 100);
    if (!g->judged) {
        SHOW(words, "the data has no part for validation, so there is nothing to judge");
        return;
    }
    SHOW(a_text, "loss %.5g", g->a);
    SHOW(b_text, "loss %.5g", g->b);
    prove_show_change(g->value, g->value_text);
    SHOW(words, "after %lld step%s the validation loss is %.6g in a and %.6g in b", (long long)e->steps, e->steps == 1 ? "" : "s", g->a, g->b);
}

/* a and b are here the last losses of the two runs of b. */
static void determinism(const struct evidence *e, struct gate *g)
{
    int64_t first = -1;
    for (int64_t i = 0; i < e->steps && first < 0; i++)
        if (memcmp(&e->b.losses[i], &e->again[i], sizeof e->again[i]) || !isfinite(e->again[i]))
            first = i;
    const bool weights = e->b.fingerprint == e->again_fingerprint;
    g->a = e->b.losses[e->steps - 1];
    g->b = e->again[e->steps - 1];
    g->value = (first >= 0) + !weights;
    g->limit = 0;
    g->pass = g->value <= g->limit;
    SHOW(a_text, "%016llx", (unsigned long long)e->b.fingerprint);
    SHOW(b_text, "%016llx", (unsigned long long)e->again_fingerprint);
    SHOW(value_text, "%s", g->pass ? "equal" : "different");
    SHOW(limit_text, "equal");
    if (g->pass)
        SHOW(words, "two runs of b have the same losses and the same weights after %lld step%s, bit for bit", (long long)e->steps,
             e->steps == 1 ? "" : "s");
    else if (first >= 0)
        SHOW(words, "two runs of b from the same seed part at step %lld: loss %.9g and %.9g", (long long)first + 1,
             e->b.losses[first], e->again[first]);
    else
        SHOW(words, "two runs of b from the same seed end with different weights, though their losses are equal");
}

static void memory(const struct evidence *e, struct gate *g)
{
    g->a = e->a.planned_bytes;
    g->b = e->b.planned_bytes;
    g->value = g->b / g->a;
    g->limit = e->limits->verify.memory;
    g->pass = g->value <= g->limit;
    prove_show_bytes(g->a, g->a_text);
    prove_show_bytes(g->b, g->b_text);
    SHOW(value_text, "× %.6g", g->value);
    SHOW(limit_text, "at most × %.4g", g->limit);
    char most[GATE_TEXT];
    prove_show_bytes(floor(g->limit * g->a), most);
    SHOW(words, "training is planned to take %s in a and %s in b, which may have %s: weights, state, inputs, workspace and what kernels work in",
         g->a_text, g->b_text, most);
}

/* Which group came more often is no property of b, so neither is the median. */
static void say_modes(const struct evidence *e, const struct speed *s, struct gate *g)
{
    const struct modes *m = &s->modes;
    char seen[120];
    if (m->share > 0)
        snprintf(seen, sizeof seen, "two groups well apart: b is about %.3f times as fast in %.0f %% of them and %.3f times in %.0f %%", m->low,
                 m->share * 100, m->high, (1 - m->share) * 100);
    else
        snprintf(seen, sizeof seen, "groups well apart, each side for itself: b is from %.3f to %.3f times as fast", m->low, m->high);
    SHOW(words, "the %d turns of each in %d openings fall into %s%s. Something else on this machine decides which, %s", s->turns, s->ratio.openings, seen,
         e->longer ? ", also when measured longer than asked for" : "",
         g->judged ? "and the limit is further from both than they are apart" : "so the gain is not known; measure again when it is quiet");
}

/* Where a gain is beyond what the delay can have made of it there is a verdict all the same. */
static void say_disturbed(const struct evidence *e, const struct speed *s, struct gate *g)
{
    SHOW(words, "other work took the cores for %.0f %% of the time: a step took %.4g ms in a and %.4g ms in b in %d turns of each in %d openings%s; "
         "without that b would be from %.3f to %.3f times as fast%s", 100 * s->delayed, s->ratio.a / 1e3, s->ratio.b / 1e3, s->turns, s->ratio.openings,
         e->longer ? ", more than asked for" : "", g->low, g->high, g->judged ? "" : "; measure again when the machine is quiet");
}

/* The lower end of the interval decides: the gain must be there, not only be possible. No verdict, which does not pass either, where
 * the interval is wide and holds the limit, other work had the cores for so long that the gain could be its doing, or where turns are of two kinds further apart than from it; a limit of zero asks for nothing. */
static void throughput(const struct evidence *e, struct gate *g)
{
    const struct speed s = speed_of(e);
    const struct ratio r = s.ratio;
    g->a = e->a.tokens_per_step / r.a * 1e6;
    g->b = e->b.tokens_per_step / r.b * 1e6;
    g->value = r.value;
    g->low = r.low;
    g->high = r.high;
    g->openings = r.openings;
    g->turns = s.turns;
    g->grouped = s.modes.two;
    g->limit = 1 + e->limits->verify.min_gain;
    g->judged = speed_is_settled(&s, g->limit);
    g->pass = g->judged ? g->low > g->limit : g->limit <= 0;
    SHOW(a_text, "%.0f tokens/s", g->a);
    SHOW(b_text, "%.0f tokens/s", g->b);
    SHOW(value_text, "× %.3f (%.3f to %.3f)", g->value, g->low, g->high);
    SHOW(limit_text, "above × %.4g", g->limit);
    if (s.disturbed) {
        say_disturbed(e, &s, g);
        return;
    }
    if (s.modes.two) {
        say_modes(e, &s, g);
        return;
    }
    char left_out[80] = "";
    if (s.left_out)
        snprintf(left_out, sizeof left_out, "; other work took the cores in %d others", s.left_out);
    SHOW(words, "a step takes %.4g ms in a and %.4g ms in b, %.3f times as fast; 90 %% interval %.3f to %.3f from %d turns of each in %d openings%s%s%s",
         r.a / 1e3, r.b / 1e3, g->value, g->low, g->high, s.turns, r.openings,
         e->longer ? ", more than asked for, as the interval was wide" : "", left_out, g->judged ? "" : ", which is too wide");
}

static const struct {
    const char *name;
    void (*judge)(const struct evidence *e, struct gate *g);
} table[] = {
    {"gradients", gradients},
    {"loss-curve", loss_curve},
    {"validation", validation},
    {"determinism", determinism},
    {"memory", memory},
    {"throughput", throughput},
};

void verdict_add(struct verdict *v, const struct gate *g)
{
    v->gates[v->n++] = *g;
    v->pass &= g->pass;
}

void verdict_limit_speed(struct verdict *v, double limit)
{
    v->pass = true;
    for (int i = 0; i < v->n; i++) {
        struct gate *g = &v->gates[i];
        if (!strcmp(g->name, "throughput")) {
            g->limit = limit;
            g->pass = g->judged && g->low > limit;
            SHOW(limit_text, "above × %.4g", limit);
        }
        v->pass &= g->pass;
    }
}

void gates_judge(const struct evidence *e, struct verdict *v)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct gate g = {.name = table[i].name, .judged = true, .low = NAN, .high = NAN};
        table[i].judge(e, &g);
        verdict_add(v, &g);
    }
}
