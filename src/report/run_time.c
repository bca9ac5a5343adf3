/* The whole run in seconds, and what fixes of little effort would save of it: people wait for runs, not for steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "report/terminal_int.h"

enum { TOP_WINS = 5 };
static const double WORTH = 0.005;          /* of the run: less is no win */

const char *report_show_seconds(double s, number_text out)
{
    const long whole = isfinite(s) ? lround(s) : 0;
    if (!isfinite(s))
        snprintf(out, sizeof(number_text), "–");
    else if (s < 1)
        return s == 0 ? strcpy(out, "0 s") : report_show_us(s * 1e6, out);
    else if (s < 99.95)
        snprintf(out, sizeof(number_text), "%.*f s", s < 9.995 ? 2 : 1, s);
    else if (whole < 600)
        snprintf(out, sizeof(number_text), "%ld s", whole);
    else if (whole < 3600)
        snprintf(out, sizeof(number_text), "%ld:%02ld min", whole / 60, whole % 60);
    else
        snprintf(out, sizeof(number_text), "%ld:%02ld:%02ld h", whole / 3600, whole / 60 % 60, whole % 60);
    return out;
}

json_t *report_run(const struct profile *p)
{
    if (p->run.steps < 1)
        return json_null();
    return json_pack("{s:I,s:o,s:o,s:o,s:o}", "steps", (json_int_t)p->run.steps, "seconds", report_number(p->run.seconds), "evaluation_s",
                     report_number(p->run.evaluation_s), "rows_scale", report_number(p->run.rows_scale),
                     "evaluation_scale", report_number(p->run.evaluation_scale));
}

static bool is_win(const struct profile *p, const struct finding *f) { return f->effort == EFFORT_LOW && f->saves_s > WORTH * p->run.seconds; }

static int by_saving(const void *a, const void *b)
{
    const struct finding *x = *(const struct finding *const *)a, *y = *(const struct finding *const *)b;
    return (x->saves_s < y->saves_s) - (x->saves_s > y->saves_s);
}

/* Those of little effort, the largest first: how many. The list is for free(). */
static int quick_wins(const struct profile *p, const struct finding ***list)
{
    int n = 0;
    *list = xcalloc((size_t)p->n_findings + 1, sizeof **list);
    for (int i = 0; i < p->n_findings; i++)
        if (is_win(p, &p->findings[i]))
            (*list)[n++] = &p->findings[i];
    qsort(*list, (size_t)n, sizeof **list, by_saving);
    return n < TOP_WINS ? n : TOP_WINS;
}

static void put_scales(FILE *to, const struct profile *p)
{
    if (!(p->run.rows_scale > 0 && p->run.rows_scale < 1))
        return;
    fprintf(to, " (%.2f of what was measured", p->run.rows_scale);
    if (p->run.evaluation_s > 0)
        fprintf(to, " for steps and %.2f for evaluation", p->run.evaluation_scale);
    fputs(", as rows of the run are shorter)", to);
}

static void put_length(FILE *to, const struct profile *p)
{
    number_text a, b;
    const bool one = p->run.steps == 1;
    fprintf(to, "At this speed %lld step%s take%s %s", (long long)p->run.steps, one ? "" : "s", one ? "s" : "", report_show_seconds(p->run.seconds, a));
    if (p->run.evaluation_s > 0)
        fprintf(to, ", %s of it evaluation", report_show_seconds(p->run.evaluation_s, b));
    put_scales(to, p);
}

void report_markdown_run(FILE *to, const struct profile *p)
{
    const struct finding **wins;
    number_text a, b;
    if (p->run.steps < 1)
        return;
    fputs("\n## The whole run\n\n", to);
    put_length(to, p);
    const int n = quick_wins(p, &wins);
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : ". Each alone, of that: ", to);
        report_put_markdown(to, wins[i]->rule);
        fprintf(to, " saves %s (%s)", report_show_seconds(wins[i]->saves_s, a), report_show_percent(wins[i]->saves_s / p->run.seconds, b));
    }
    fputs(".\n", to);
    free(wins);
}

void screen_put_run(const struct screen *s, const struct profile *p)
{
    const struct finding **wins;
    number_text a, b;
    if (p->run.steps < 1)
        return;
    screen_put_heading(s, "Whole run", "");
    fputs("  ", s->to);
    put_length(s->to, p);
    fputc('\n', s->to);
    const int n = quick_wins(p, &wins);
    for (int i = 0; i < n; i++) {
        fputs("  ", s->to);
        screen_put_padded(s, wins[i]->rule, SCREEN_NAME + 2);
        fprintf(s->to, "alone saves %s of %s\n", report_show_seconds(wins[i]->saves_s, a), report_show_seconds(p->run.seconds, b));
    }
    free(wins);
}
