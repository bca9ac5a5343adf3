/* The ranks of a profile beside each other: in report.json, in report.md and on the terminal. */
#include <math.h>
#include <string.h>

#include "core/json_whole.h"
#include "report/terminal_int.h"

#define N report_number

enum { SHOWN = 8 };                     /* ranks, and the one that is late */

/* The rank that the finding about stragglers names; -1: there is none. */
static int late_rank(const struct profile *p)
{
    int last = 0;
    bool found = false;
    for (int i = 0; i < p->n_findings; i++)
        found |= p->findings[i].rule && !strcmp(p->findings[i].rule, "straggler");
    for (int r = 1; r < p->n_ranks; r++)
        last = p->ranks[r].wait_us < p->ranks[last].wait_us ? r : last;
    return found ? last : -1;
}

json_t *report_ranks(const struct profile *p)
{
    const int late = late_rank(p);
    json_t *list = json_array();
    for (int r = 0; r < p->n_ranks; r++) {
        const struct profile_rank *k = &p->ranks[r];
        list = report_array(list, json_pack("{s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b}", "rank", r, "host", report_name(k->host), "step_us",
                                            N(k->step_us), "compute_us", N(k->compute_us), "loader_us", N(k->loader_us), "exposed_comm_us",
                                            N(k->exposed_us), "wait_us", N(k->wait_us), "sums_us", N(k->sums_us), "hidden_share",
                                            k->hidden_share < 0 ? json_null() : N(k->hidden_share), "busy", N(report_ratio(k->compute_us, k->step_us)),
                                            "memory_bytes", json_whole(k->memory_bytes), "delayed_share",
                                            k->delayed_share < 0 ? json_null() : N(k->delayed_share), "straggler", r == late));
    }
    return list;
}

static const char *show_hidden(const struct profile_rank *k, number_text out)
{
    if (k->hidden_share < 0)
        snprintf(out, sizeof(number_text), "-");
    else
        snprintf(out, sizeof(number_text), "%.0f %%", 100 * k->hidden_share);
    return out;
}

static void put_rank(const struct screen *s, const struct profile_rank *k, int r, bool late)
{
    number_text n;
    const double us[] = {k->step_us, k->compute_us, k->loader_us, k->exposed_us, k->wait_us, k->sums_us};
    fprintf(s->to, "  %s%6d", screen_style(s, late ? RED : ""), r);
    for (size_t i = 0; i < sizeof us / sizeof *us; i++)
        screen_put_right(s, report_show_us(us[i], n), 10);
    screen_put_right(s, show_hidden(k, n), 8);
    screen_put_right(s, report_show_bytes(k->memory_bytes, n), 10);
    fputs("  ", s->to);
    screen_put_cut(s, k->host, late ? 12 : 24);
    fprintf(s->to, "%s%s\n", late ? "  ← straggler" : "", screen_style(s, late ? OFF : ""));
}

void screen_put_ranks(const struct screen *s, const struct profile *p)
{
    const int late = late_rank(p);
    if (p->n_ranks < 2)
        return;
    screen_put_heading(s, "Ranks", ", per step; exposed: sums that nothing hides; wait: for ranks that are later; hidden: of the bytes of sums, before the last rank's backward had ended");
    fprintf(s->to, "  %s%6s%10s%10s%10s%10s%10s%10s%8s%10s  %s%s\n", screen_style(s, DIM), "rank", "step", "compute", "loader", "exposed", "wait",
            "sums", "hidden", "memory", "machine", screen_style(s, OFF));
    for (int r = 0; r < p->n_ranks; r++)
        if (r < SHOWN || r == late)
            put_rank(s, &p->ranks[r], r, r == late);
    if (p->n_ranks > SHOWN)
        fprintf(s->to, "  %s%d ranks in all%s\n", screen_style(s, DIM), p->n_ranks, screen_style(s, OFF));
}

void report_markdown_ranks(FILE *to, const struct profile *p)
{
    const int late = late_rank(p);
    number_text a, b, c, d, e, f, g, h;
    if (p->n_ranks < 2)
        return;
    fputs("\n## Ranks\n\nPer step. Exposed: sums that every rank waits for; wait: for ranks that are later; sums: hidden or not; hidden: of their bytes, those that travelled before the last rank's backward had ended.\n\n"
          "| rank | machine | step | compute | loader | exposed | wait | sums | hidden | memory |\n|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n", to);
    for (int r = 0; r < p->n_ranks; r++) {
        const struct profile_rank *k = &p->ranks[r];
        if (r >= SHOWN && r != late)
            continue;
        fprintf(to, "| %d%s | ", r, r == late ? " (straggler)" : "");
        report_put_markdown_cut(to, k->host, 64);
        fprintf(to, " | %s | %s | %s | %s | %s | %s | %s | %s |\n", report_show_us(k->step_us, a), report_show_us(k->compute_us, b),
                report_show_us(k->loader_us, c), report_show_us(k->exposed_us, d), report_show_us(k->wait_us, e), report_show_us(k->sums_us, f),
                show_hidden(k, g), report_show_bytes(k->memory_bytes, h));
    }
    if (p->n_ranks > SHOWN)
        fprintf(to, "\nAll %d ranks are in report.json.\n", p->n_ranks);
}
