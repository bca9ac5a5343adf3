/* The pieces of report.json that a profile and a diagnosed trace have in common. */
#include <math.h>
#include <string.h>

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

/* Without what says only how the file is stored. */
static void cut_suffixes(char *name)
{
    static const char *const suffixes[] = {".gz", ".json", ".pt.trace", NULL};
    for (const char *const *s = suffixes; *s; s++) {
        const size_t n = strlen(name), m = strlen(*s);
        if (n > m && !strcmp(name + n - m, *s))
            name[n - m] = '\0';
    }
}

const char *report_trace_title(const struct diagnosis *d, char out[TITLE_MOST])
{
    const char *path = d->name && *d->name ? d->name : "a trace";
    if (!strcmp(path, "-"))
        path = "standard input";
    size_t end = strlen(path), from = 0;
    if (!d->watched) {                          /* that one has a command, which is no path */
        while (end > 1 && path[end - 1] == '/')
            end--;
        for (size_t i = 0; i + 1 < end; i++)
            from = path[i] == '/' ? i + 1 : from;
    }
    snprintf(out, TITLE_MOST, "%.*s", (int)(end - from), path + from);
    if (!d->watched)
        cut_suffixes(out);
    return out;
}

const char *report_trace_steps_note(const struct diagnosis *d, char out[STEPS_NOTE_MOST])
{
    out[0] = '\0';
    if (d->steps_left_out)
        snprintf(out, STEPS_NOTE_MOST, "%d of %d steps are listed: the first, the last, the fastest, the %d slowest, and others evenly "
                 "spread. Sums, means and medians are of all.", diagnosis_shown_steps(d), d->n_steps, SHOWN_SLOWEST);
    return out;
}

bool report_trace_shows_cost(const struct diagnosis *d) { return d->corrected.cost_per_event_us >= 0.005; }

static const char *judged_words(const struct diagnosis *d, char out[64])
{
    const int all = d->n_steps - (d->all_cold ? 0 : d->cold_steps);
    if (d->judged_steps > 0 && d->judged_steps < all)
        snprintf(out, 64, "the %d of %d steps that %s judged", d->judged_steps, d->n_steps, d->judged_steps == 1 ? "is" : "are");
    else
        snprintf(out, 64, "the steps that are judged");
    return out;
}

/* Two times of a recorded step on one page need a word. */
const char *report_trace_recorded_note(const struct diagnosis *d, char out[RECORDED_NOTE_MOST])
{
    static const double noticed = 0.005;
    const double recorded = d->corrected.recorded_us, mean = d->mean.total_us;
    const bool device = d->gpu.total_us > 0;
    number_text a, b;
    char judged[64];
    out[0] = '\0';
    if (d->n_steps > 1 && recorded > 0 && mean > 0 && fabs(recorded / mean - 1) >= noticed)
        snprintf(out, RECORDED_NOTE_MOST, "%s as recorded: of %s%s%s; the mean of all steps%s is %s.", report_show_us(recorded, a), judged_words(d, judged),
                 d->cold_steps && !d->all_cold ? ", which are not the cold ones" : "",
                 device ? ", each without what the device had left of steps before" : d->judged_steps > 1 ? ", with the time between them" : "",
                 device ? ", with it," : "", report_show_us(mean, b));
    return out;
}

const char *report_trace_ops_note(const struct diagnosis *d, char out[OPS_NOTE_MOST])
{
    static const double much = 0.05;
    number_text n;
    const bool on_device = d->n_ops && d->ops[0].device_self_us > 0;        /* the one with the most is first */
    out[0] = '\0';
    if (on_device && d->no_op_share >= much)
        snprintf(out, OPS_NOTE_MOST, "Shares are of all time on the device in steps. No op launched %s of it: graphs, compiled code, or calls outside "
                 "of ops.", report_show_percent(d->no_op_share, n));
    else if (on_device)
        snprintf(out, OPS_NOTE_MOST, "Shares are of all time on the device in steps.");
    else if (d->n_ops)
        snprintf(out, OPS_NOTE_MOST, "Shares are of the self time of all ops%s.",
                 d->no_op_share > 0 ? " on the host: which of them launched the device's work is not known" : "");
    return out;
}

const char *report_trace_devices_note(const struct diagnosis *d, char out[DEVICES_NOTE_MOST])
{
    number_text n;
    out[0] = '\0';
    if (d->gpu.devices > 1)
        snprintf(out, DEVICES_NOTE_MOST, "%d devices: they count as busy while one of them works and as idle while none does; the busiest alone works %s of the time.",
                 d->gpu.devices, report_show_percent(report_ratio(d->gpu.busiest_us, d->gpu.total_us), n));
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
