/* The table of collectives of an imported trace, for the terminal, report.md and report.json. */
#include <math.h>

#include "core/json_whole.h"
#include "report/terminal_int.h"

enum { SCREEN_ROWS = 6, MARKDOWN_ROWS = 20, NAME = 14, LAST = 16 };

#define N report_number

static double or_nan(double x, bool known) { return known ? x : NAN; }

json_t *report_trace_collectives(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_collectives; i++) {
        const struct trace_collective *c = &d->collectives[i];
        json_t *row = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", report_name(c->name), "bytes", c->bytes >= 0 ? json_whole(c->bytes) : json_null(),
                                "ranks", c->ranks > 0 ? json_integer(c->ranks) : json_null(), "per_step", N(c->per_step), "total_us", N(c->total_us),
                                "exposed_us", N(c->exposed_us), "mean_us", N(c->mean_us));
        list = report_array(list, report_merge(row, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "best_us", N(c->best_us), "gb_per_s",
                                                              c->gb_per_s > 0 ? N(c->gb_per_s) : json_null(), "spread_us",
                                                              c->spread_us >= 0 ? N(c->spread_us) : json_null(), "last_rank",
                                                              c->last_rank >= 0 ? json_integer(c->last_rank) : json_null(), "last_name",
                                                              report_name(c->last_name), "last_share",
                                                              c->last_rank >= 0 || c->last_name ? N(c->last_share) : json_null())));
    }
    return list;
}

/* The rank that comes last has no number: its file tells it. */
static bool is_named(const struct trace_collective *c) { return c->last_rank < 0 && c->last_name; }

/* "3, in 75 %" */
static const char *show_last(const struct trace_collective *c, number_text out)
{
    number_text share;
    if (c->last_rank < 0)
        return "–";
    snprintf(out, sizeof(number_text), "%d, in %s", c->last_rank, report_show_percent(c->last_share, share));
    return out;
}

/* A file's name leaves no room for the share. */
static void put_last(const struct screen *s, const struct trace_collective *c)
{
    number_text n;
    fputs("  ", s->to);
    screen_put_cut(s, is_named(c) ? c->last_name : show_last(c, n), LAST);
}

static const char *show_ranks(const struct trace_collective *c, number_text out)
{
    if (c->ranks <= 0)
        return "–";
    snprintf(out, sizeof(number_text), "%d", c->ranks);
    return out;
}

void screen_put_collectives(const struct screen *s, const struct diagnosis *d)
{
    if (!d->n_collectives)
        return;
    screen_put_heading(s, "Collectives", ", per step, mean of the ranks; late: from the first rank's arrival to the last's");
    fprintf(s->to, "  %s%-*s%9s%6s%7s%9s%9s%9s%7s%9s%s%s\n", screen_style(s, DIM), NAME, "kind", "size", "ranks", "count", "each", "total", "exposed",
            "GB/s", "late", d->n_ranks > 1 ? "  last rank" : "", screen_style(s, OFF));
    for (int i = 0; i < d->n_collectives && i < SCREEN_ROWS; i++) {
        const struct trace_collective *c = &d->collectives[i];
        number_text n;
        fputs("  ", s->to);
        screen_put_padded(s, c->name, NAME);
        screen_put_right(s, report_show_bytes(or_nan(c->bytes, c->bytes >= 0), n), 9);
        screen_put_right(s, show_ranks(c, n), 6);
        screen_put_right(s, report_show_number(c->per_step, n), 7);
        screen_put_right(s, report_show_us(c->mean_us, n), 9);
        screen_put_right(s, report_show_us(c->total_us, n), 9);
        screen_put_right(s, report_show_us(c->exposed_us, n), 9);
        screen_put_right(s, report_show_number(or_nan(c->gb_per_s, c->gb_per_s > 0), n), 7);
        screen_put_right(s, report_show_us(or_nan(c->spread_us, c->spread_us >= 0), n), 9);
        if (d->n_ranks > 1)
            put_last(s, c);
        fputc('\n', s->to);
    }
    if (d->n_collectives > SCREEN_ROWS)
        fprintf(s->to, "  %s%d kinds and sizes in all%s\n", screen_style(s, DIM), d->n_collectives, screen_style(s, OFF));
}

void report_markdown_collectives(FILE *to, const struct diagnosis *d)
{
    if (!d->n_collectives)
        return;
    fputs("\n## Collectives, per step, mean of the ranks\n\n| kind | size | ranks | count | each | total | exposed | GB/s | first to last arrival | last rank |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n", to);
    for (int i = 0; i < d->n_collectives && i < MARKDOWN_ROWS; i++) {
        const struct trace_collective *c = &d->collectives[i];
        number_text a, b, e, f, g, h, k, l, m;
        fputs("| ", to);
        report_put_markdown_cut(to, c->name, 40);
        fprintf(to, " | %s | %s | %s | %s | %s | %s | %s | %s | ", report_show_bytes(or_nan(c->bytes, c->bytes >= 0), a), show_ranks(c, b),
                report_show_number(c->per_step, e), report_show_us(c->mean_us, f), report_show_us(c->total_us, g), report_show_us(c->exposed_us, h),
                report_show_number(or_nan(c->gb_per_s, c->gb_per_s > 0), k), report_show_us(or_nan(c->spread_us, c->spread_us >= 0), l));
        if (is_named(c))
            report_put_markdown_cut(to, c->last_name, 60);
        fprintf(to, "%s%s |\n", is_named(c) ? ", in " : "", is_named(c) ? report_show_percent(c->last_share, m) : show_last(c, m));
    }
    if (d->n_collectives > MARKDOWN_ROWS)
        fprintf(to, "\n%d kinds and sizes in all.\n", d->n_collectives);
}
