/* The pieces of report.json that a profile and a diagnosed trace have in common. */
#include "report/report_int.h"

#define N report_number
#define W report_name

struct answers report_profile_answers(const struct profile *p)
{
    return (struct answers){p->headline, p->bound_by, p->largest, p->first_action, p->realistic_gain, p->warning};
}

struct answers report_trace_answers(const struct diagnosis *d)
{
    return (struct answers){d->headline, d->bound_by, d->largest, d->first_action, d->realistic_gain, NULL};
}

const char *report_trace_steps_note(const struct diagnosis *d, char out[STEPS_NOTE_MOST])
{
    out[0] = '\0';
    if (d->steps_left_out)
        snprintf(out, STEPS_NOTE_MOST, "%d of %d steps are listed: the first, the last, the fastest, the %d slowest, and others evenly "
                 "spread. Sums, means and medians are of all.", diagnosis_shown_steps(d), d->n_steps, SHOWN_SLOWEST);
    return out;
}

static json_t *answers_object(const struct answers *a)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "headline", W(a->headline), "warning", W(a->warning), "bound_by", W(a->bound_by), "largest",
                     W(a->largest), "first_action", W(a->first_action), "realistic_gain", W(a->realistic_gain));
}

json_t *report_head(const char *kind, int schema, const char *version, const struct answers *answers)
{
    json_t *head = json_pack("{s:s,s:i,s:s,s:o}", "schema", "hone-report", "schema_version", schema, "kind", kind,
                             "hone_version", W(version));
    return answers ? report_merge(head, json_pack("{s:o}", "answers", answers_object(answers))) : head;
}

json_t *report_parts(const struct profile_part *part, int n, double whole)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        list = report_array(list, json_pack("{s:o,s:o,s:o}", "name", W(part[i].name), "us", N(part[i].us), "share",
                                            N(report_ratio(part[i].us, whole))));
    return list;
}

json_t *report_findings(const struct finding *findings, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const struct finding *f = &findings[i];
        list = report_array(
            list, json_pack("{s:o,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "rule", W(f->rule), "severity",
                            severity_name(f->severity), "effort", effort_name(f->effort), "share", N(f->share),
                            "expected_speedup", N(f->speedup), "expected_speedup_low", N(f->speedup_low),
                            "expected_speedup_high", N(f->speedup_high), "where", W(f->where), "cause", W(f->cause),
                            "fix", W(f->fix), "evidence", W(f->evidence), "after", W(f->after), "pass", W(f->pass), "confidence",
                            W(f->confidence), "raise", W(f->raise), "saves_s", f->saves_s > 0 ? N(f->saves_s) : json_null()));
    }
    return list;
}
