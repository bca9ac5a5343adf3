/* The same views of an imported trace in a terminal: the first rows of each. */
#include <math.h>

#include "report/terminal_int.h"
#include "report/trace_views_int.h"

enum { TOP = 5, NAME = 40, SHAPES = 26 };

static void put_number(const struct screen *s, double x, size_t columns)
{
    number_text n;
    screen_put_right(s, report_show_number(x, n), columns);
}

static void put_us(const struct screen *s, double us, size_t columns)
{
    number_text n;
    screen_put_right(s, report_show_us(us, n), columns);
}

static void put_roofs(const struct screen *s, const struct diagnosis *d)
{
    number_text n;
    char *mfu = report_mfu_words(d);
    if (mfu) {
        fputc('\n', s->to);
        screen_put_answer(s, "MFU", mfu);
    }
    free(mfu);
    if (!d->n_roofs)
        return;
    const struct rate_unit unit = report_rate_unit(d);
    char title[64], rate[16], more[128];
    snprintf(title, sizeof title, "Ops against the %s's peaks", unit.whose);
    snprintf(rate, sizeof rate, "%sFLOP/s", unit.prefix);
    snprintf(more, sizeof more, ", per step; the peaks of this %s are not known: %s", unit.whose,
             d->watched && unit.cpu ? "hone doctor measures them" : "--peak-tflops, --peak-gbps");
    screen_put_heading(s, title, d->peaks.tflops > 0 || d->peaks.gbps > 0 ? ", per step" : more);
    fprintf(s->to, "  %s%-*s %-*s%9s%9s%9s%9s%s\n", screen_style(s, DIM), NAME, "op", SHAPES, "shapes", unit.time, rate, "GB/s", "of peak", screen_style(s, OFF));
    for (int i = 0; i < d->n_roofs && i < TOP; i++) {
        const struct trace_roof *r = &d->roofs[i];
        fputs("  ", s->to);
        screen_put_padded(s, r->op, NAME);
        fputc(' ', s->to);
        screen_put_padded(s, r->shapes, SHAPES);
        put_us(s, r->device_us, 9);
        put_number(s, r->flops > 0 ? r->tflops * unit.of_tera : NAN, 9);
        put_number(s, r->bytes > 0 ? r->gbps : NAN, 9);
        screen_put_right(s, report_show_percent(r->percent >= 0 ? r->percent / 100 : NAN, n), 9);
        fputs(r->percent < 0 ? "\n" : r->by_memory ? " memory\n" : " products\n", s->to);
    }
}

static void put_modules(const struct screen *s, const struct diagnosis *d)
{
    number_text n;
    if (!d->n_modules)
        return;
    screen_put_heading(s, d->modules_are_ranges ? "Ranges" : "Modules", ", per step, each with what is inside");
    const bool device = d->gpu.total_us > 0;
    fprintf(s->to, "  %s%-*s%9s", screen_style(s, DIM), NAME, "name", "count");
    fprintf(s->to, device ? "%12s%12s%9s%11s%s\n" : "%.0s%.0s%.0s%11s%s\n", "GPU forward", "backward", "share", device ? "host" : "time", screen_style(s, OFF));
    for (int i = 0; i < d->n_modules && i < TOP; i++) {
        const struct trace_module *m = &d->modules[i];
        fputs("  ", s->to);
        screen_put_padded(s, m->name, NAME);
        screen_put_right(s, report_show_count(m->count, n), 9);
        if (device) {
            put_us(s, m->forward_us, 12);
            put_us(s, m->backward_us, 12);
            screen_put_right(s, report_show_percent(m->share, n), 9);
        }
        put_us(s, m->host_us, 11);
        fputc('\n', s->to);
    }
}

static void put_frames(const struct screen *s, const struct diagnosis *d)
{
    number_text n;
    if (!d->n_frames)
        return;
    screen_put_heading(s, "Python", ", per step as recorded; self: without functions, ops and calls inside");
    fprintf(s->to, "  %s%-*s%9s%11s%11s%s\n", screen_style(s, DIM), NAME + 20, "function", "count", "self", "total", screen_style(s, OFF));
    for (int i = 0; i < d->n_frames && i < TOP; i++) {
        const struct trace_frame *f = &d->frames[i];
        fputs("  ", s->to);
        screen_put_padded(s, f->name, NAME + 20);
        screen_put_right(s, report_show_count(f->count, n), 9);
        put_us(s, f->self_us, 11);
        put_us(s, f->total_us, 11);
        fputc('\n', s->to);
    }
}

void screen_put_baseline(const struct screen *s, const struct baseline *b)
{
    char words[BASELINE_WORDS];
    if (!b)
        return;
    screen_put_heading(s, "Against the baseline", "");
    fputs("  ", s->to);
    screen_put_wrapped(s, report_baseline_words(b, words), 2);
    for (int i = 0; i < b->n_rows && i < TOP; i++) {
        fputs("  ", s->to);
        screen_put_padded(s, b->rows[i].name, NAME);
        put_us(s, b->rows[i].before_us, 11);
        put_us(s, b->rows[i].after_us, 11);
        fprintf(s->to, "  %s\n", b->rows[i].what);
    }
    screen_put_answer(s, "new", b->new_rules);
}

void screen_put_views(const struct screen *s, const struct diagnosis *d)
{
    put_roofs(s, d);
    put_modules(s, d);
    put_frames(s, d);
}
