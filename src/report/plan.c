/* What to do, of a profile and of a trace, in report.json: findings, how many of each severity, the roadmap, and a list to check them off by. */
#include <string.h>

#include "core/arena.h"
#include "report/report_int.h"

#define N report_number
#define W report_name

static const double WORTH_CHECKING = 1.005;     /* expected speed-up */

struct plan report_profile_plan(const struct profile *p)
{
    return (struct plan){p->findings, p->n_findings, p->phases, p->n_phases, false};
}

struct plan report_trace_plan(const struct diagnosis *d)
{
    return (struct plan){d->findings, d->n_findings, d->phases, d->n_phases, true};
}

/* ---- how many ---- */

int report_count(const struct plan *p, enum severity severity)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += p->findings[i].severity == severity;
    return n;
}

const char *report_counts(const struct plan *p, char out[COUNTS_MOST])
{
    int at = snprintf(out, COUNTS_MOST, "%d finding%s", p->n, p->n == 1 ? "" : "s");
    const char *before = ": ";
    for (int s = SEVERITY_CRITICAL; s >= SEVERITY_LOW; s--)
        if (report_count(p, (enum severity)s)) {
            at += snprintf(out + at, COUNTS_MOST - (size_t)at, "%s%d %s", before, report_count(p, (enum severity)s), severity_name((enum severity)s));
            before = ", ";
        }
    return out;
}

static json_t *counts(const struct plan *p)
{
    return json_pack("{s:i,s:i,s:i,s:i}", "critical", report_count(p, SEVERITY_CRITICAL), "high", report_count(p, SEVERITY_HIGH), "medium",
                     report_count(p, SEVERITY_MEDIUM), "low", report_count(p, SEVERITY_LOW));
}

/* ---- the findings ---- */

/* The options that a fix begins with: of "--set a.b=on --set c=2: what it does" what stands before the colon. Empty: it is words. */
static size_t option_bytes(const char *fix)
{
    size_t n = 0;
    while (fix && !strncmp(fix + n, "--set ", 6)) {
        const size_t end = n + 6 + strcspn(fix + n + 6, " ");
        n = end + strspn(fix + end, " ");
    }
    while (n && strchr(" :;,", fix[n - 1]))
        n--;
    return n;
}

const char *report_option(struct arena *a, const struct finding *f)
{
    const size_t n = option_bytes(f->fix);
    return n ? arena_printf(a, "%.*s", (int)n, f->fix) : NULL;
}

const char *report_share_of(const struct finding *f) { return f->with_evaluation ? "steps with their evaluation" : "the step"; }

static json_t *finding(const struct finding *f)
{
    struct arena a = {0};
    json_t *text = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "where", W(f->where), "cause", W(f->cause), "fix", W(f->fix), "option", W(report_option(&a, f)),
                             "evidence", W(f->evidence), "after", W(f->after), "pass", W(f->pass), "confidence", W(f->confidence), "raise", W(f->raise),
                             "saves_s", f->saves_s > 0 ? N(f->saves_s) : json_null(), "predicted_speedup", f->predicted > 0 ? N(f->predicted) : json_null());
    arena_release(&a);
    return report_merge(json_pack("{s:o,s:s,s:s,s:b,s:b,s:o,s:o,s:o,s:o}", "rule", W(f->rule), "severity", severity_name(f->severity), "effort",
                                  effort_name(f->effort), "per_sample", f->per_sample, "with_evaluation", f->with_evaluation, "share", N(f->share), "expected_speedup", N(f->speedup), "expected_speedup_low",
                                  N(f->speedup_low), "expected_speedup_high", N(f->speedup_high)), text);
}

static json_t *findings(const struct plan *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n; i++)
        list = report_array(list, finding(&p->findings[i]));
    return list;
}

/* ---- the roadmap ---- */

bool report_in_phase(const struct plan *p, const struct plan_phase *phase, int i)
{
    return phase->findings[i] >= 0 && phase->findings[i] < p->n;
}

static json_t *phase(const struct plan *p, const struct plan_phase *of)
{
    json_t *rules = json_array(), *indices = json_array();
    for (int i = 0; i < of->n; i++)
        if (report_in_phase(p, of, i)) {
            rules = report_array(rules, W(p->findings[of->findings[i]].rule));
            indices = report_array(indices, json_integer(of->findings[i]));
        }
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b}", "title", W(of->title), "rules", rules, "findings", indices, "cumulative_speedup", N(of->speedup),
                     "cumulative_speedup_low", N(of->low), "cumulative_speedup_high", N(of->high), "step_us", of->step_us > 0 ? N(of->step_us) : json_null(),
                     "with_evaluation", of->with_evaluation);
}

static json_t *phases(const struct plan *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_phases; i++)
        list = report_array(list, phase(p, &p->phases[i]));
    return list;
}

/* ---- the list to check off ---- */

static const char *const last_of_profile[] = {
    "hone verify OLD.yaml NEW.yaml: gradients, loss, determinism, memory and throughput hold",
    "hone profile NEW.yaml: these findings are gone", NULL};
static const char *const last_of_trace[] = {
    "record again after warm-up, and hone analyze NEW --diff OLD: these findings are gone, and no op takes longer",
    "the loss of the first steps is as before", NULL};

bool report_is_checked(const struct finding *f) { return f->speedup >= WORTH_CHECKING; }
const char *const *report_last_checks(const struct plan *p) { return p->trace ? last_of_trace : last_of_profile; }

const char *report_check(struct arena *a, const struct finding *f)
{
    const char *option = report_option(a, f);
    number_text n, low, high;
    return arena_printf(a, "%s: %s%s%s%s (%s to %s)", f->rule ? f->rule : "", option ? option : "", option ? " gives " : "fixed, it gives ",
                        report_show_speedup(f->speedup, n), f->per_sample ? " samples/s" : "", report_show_speedup(f->speedup_low, low), report_show_speedup(f->speedup_high, high));
}

static json_t *checks(const struct plan *p)
{
    json_t *list = json_array();
    struct arena a = {0};
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (report_is_checked(&p->findings[i])) {
            list = report_array(list, json_pack("{s:i,s:o}", "finding", i, "text", W(report_check(&a, &p->findings[i]))));
            n++;
        }
    arena_release(&a);
    for (const char *const *last = report_last_checks(p); n && *last; last++)
        list = report_array(list, json_pack("{s:n,s:s}", "finding", "text", *last));
    return list;
}

json_t *report_plan(const struct plan *p)
{
    return json_pack("{s:o,s:o,s:o,s:o}", "counts", counts(p), "findings", findings(p), "phases", phases(p), "checks", checks(p));
}
