/* Numbers of a run over domains, and their mean and spread over seeds. */
#include <math.h>
#include <string.h>

#include "prove/forget.h"

struct forget_spread forget_spread(const double *values, int n)
{
    struct forget_spread s = {.mean = NAN, .sd = NAN};
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(values[i])) {
            sum += values[i];
            s.n++;
        }
    if (s.n)
        s.mean = sum / s.n;
    for (int i = 0; i < n; i++)
        if (isfinite(values[i]))
            squares += (values[i] - s.mean) * (values[i] - s.mean);
    if (s.n > 1)
        s.sd = sqrt(squares / (s.n - 1));
    return s;
}

bool forget_entropy_known(const struct forget_run *r)
{
    for (int d = 0; d < r->n_domains; d++)
        if (!isfinite(r->entropy[d]))
            return false;
    return true;
}

static double own(const struct forget_run *r, int domain) { return r->loss[domain + 1][domain]; }
static double end(const struct forget_run *r, int domain) { return r->loss[r->n_domains][domain]; }

double forget_nats(const struct forget_run *r, int domain)
{
    return r->done && domain + 1 < r->n_domains ? end(r, domain) - own(r, domain) : NAN;
}

double forget_percent(double nats) { return 100 * expm1(nats); }

struct forget_numbers forget_numbers(const struct forget_run *r)
{
    struct forget_numbers n = {0};
    const int last = r->n_domains - 1;
    const bool known = forget_entropy_known(r);
    if (!r->done)
        return (struct forget_numbers){NAN, NAN, NAN, NAN, NAN};
    for (int d = 0; d <= last; d++) {
        const double floor = known ? r->entropy[d] : 0;
        n.end_loss += (end(r, d) - floor) / r->n_domains;
        if (d > 0) {
            n.new_loss += (own(r, d) - floor) / last;
            n.learned += (r->loss[0][d] - own(r, d)) / last;
        }
        if (d < last) {
            n.forgotten += forget_nats(r, d) / last;
            n.percent += forget_percent(forget_nats(r, d)) / last;
        }
    }
    if (!last)
        n.new_loss = n.learned = n.forgotten = n.percent = NAN;
    return n;
}

/* ---- configs ---- */

const char *forget_choice_word(enum forget_choice c)
{
    static const char *const words[] = {[CHOICE_NONE] = "none", [CHOICE_GRADIENT] = "gradient", [CHOICE_RANDOM] = "random",
                                        [CHOICE_ALL] = "all", [CHOICE_OTHER] = "other"};
    return words[c];
}

const struct forget_run *forget_first_done(const struct forget_config *c)
{
    for (int i = 0; i < c->n_runs; i++)
        if (c->runs[i].done)
            return &c->runs[i];
    return NULL;
}

/* Level by level: the nodes of a level follow each other, and so do the children of each. */
int forget_parent(const struct forget_config *c, int node)
{
    int first = 0, width = 1;               /* of the parents' level */
    for (int level = 0; level < c->levels; level++) {
        const int next = first + width, below = width * c->tree[level];
        if (node < next)
            break;
        if (node < next + below)
            return first + (node - next) / c->tree[level];
        first = next;
        width = below;
    }
    return -1;
}

void forget_release(struct forget *f) { arena_release(&f->arena); }
