/* An imported trace by ops against the device's peaks, by modules of the model, and by Python functions: in JSON and Markdown. */
#include <math.h>

#include "core/json_whole.h"
#include "report/report_int.h"
#include "report/trace_views_int.h"
#include "report/trace_watched_int.h"

#define N report_number
#define W report_name

enum { TOP = 6, NAME_COLUMNS = 90 };

static json_t *if_known(double x) { return x >= 0 ? N(x) : json_null(); }
static json_t *if_positive(double x) { return x > 0 ? N(x) : json_null(); }

/* ---- JSON ---- */

static json_t *roofs(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_roofs; i++) {
        const struct trace_roof *r = &d->roofs[i];
        json_t *row = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "op", W(r->op), "shapes", W(r->shapes), "types", W(r->types), "count",
                                N(r->count), "device_us", N(r->device_us), "flops", if_positive(r->flops), "bytes", r->bytes > 0 ? json_whole(r->bytes) : json_null());
        list = report_array(list, report_merge(row, json_pack("{s:o,s:o,s:o,s:o}", "tflops", if_positive(r->tflops), "gbps",
                                                              if_positive(r->gbps), "percent_of_peak", if_known(r->percent), "limit",
                                                              r->percent >= 0 ? json_string(r->by_memory ? "memory" : "products") : json_null())));
    }
    return list;
}

static json_t *modules(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_modules; i++) {
        const struct trace_module *m = &d->modules[i];
        list = report_array(list, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "name", W(m->name), "count", N(m->count), "host_us", N(m->host_us),
                                            "forward_us", N(m->forward_us), "backward_us", N(m->backward_us), "share", N(m->share)));
    }
    return list;
}

static json_t *frames(const struct diagnosis *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_frames; i++) {
        const struct trace_frame *f = &d->frames[i];
        list = report_array(list, json_pack("{s:o,s:o,s:o,s:o}", "name", W(f->name), "count", N(f->count), "self_us", N(f->self_us), "total_us",
                                            N(f->total_us)));
    }
    return list;
}

json_t *report_trace_views(const struct diagnosis *d)
{
    const struct trace_peaks *p = &d->peaks;
    json_t *peaks = json_pack("{s:o,s:o,s:i,s:o,s:b}", "tflops", if_positive(p->tflops), "gbps", if_positive(p->gbps), "devices", p->devices, "numbers", W(p->numbers), "given",
                              p->given);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:o,s:o,s:s,s:o}", "baseline", report_baseline_json(d->baseline), "watched", report_watched(d), "roofline", roofs(d), "peaks", peaks, "mfu_percent", if_known(d->n_roofs ? d->mfu_percent : -1),
                     "mfu_at_least", d->mfu_at_least, "uncounted_share", N(d->uncounted_share), "products_flops", if_positive(d->products_flops), "modules", modules(d), "modules_are",
                     d->modules_are_ranges ? "ranges" : "modules", "python", frames(d));
}

/* ---- words ---- */

struct rate_unit report_rate_unit(const struct diagnosis *d)
{
    return d->gpu.total_us > 0 ? (struct rate_unit){"T", 1, "device", "GPU", false, ""} : (struct rate_unit){"G", 1e3, "CPU", "time", true, ", measured by hone doctor"};
}

char *report_mfu_words(const struct diagnosis *d)
{
    char *text = NULL;
    size_t size = 0;
    number_text a;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    const struct rate_unit unit = report_rate_unit(d);
    char each[32] = "";
    if (d->peaks.devices > 1)
        snprintf(each, sizeof each, "%d devices with ", d->peaks.devices);
    if (d->n_roofs && d->mfu_percent > 0)
        fprintf(to, "%s%.1f %% of %s%.4g %sFLOP/s (%s%s), by %s %sFLOP of products whose shapes are known", d->mfu_at_least ? "at least " : "", d->mfu_percent, each,
                d->peaks.tflops * unit.of_tera, unit.prefix, d->peaks.numbers ? d->peaks.numbers : "products", d->peaks.given ? ", given" : unit.measured,
                report_show_number(d->products_flops / 1e12 * unit.of_tera, a), unit.prefix);
    else if (d->n_roofs && d->mfu_at_least)
        fputs("not known", to);
    if (d->n_roofs && d->mfu_at_least)
        fprintf(to, "; of %.0f %% of the %s, in products, convolutions and attention, the arithmetic is not known", 100 * d->uncounted_share,
                unit.cpu ? "time of ops" : "device's time");
    if (fclose(to) == 0 && size)
        return text;
    free(text);
    return NULL;
}

/* ---- Markdown ---- */

static void put_name(FILE *to, const char *name)
{
    report_put_markdown_cut(to, name && *name ? name : "–", NAME_COLUMNS);
    fputs(" | ", to);
}

static void put_roofs(FILE *to, const struct diagnosis *d)
{
    number_text a, b, c, e, f;
    if (!d->n_roofs)
        return;
    const struct rate_unit unit = report_rate_unit(d);
    char *mfu = report_mfu_words(d);
    fprintf(to, "\n## Ops against the %s's peaks, per step\n\n%s%s%s| op | shapes | count | %s | %sFLOP/s | GB/s | of the peak |\n"
            "|---|---|---:|---:|---:|---:|---:|\n", unit.whose, mfu ? "MFU " : "", mfu ? mfu : "", mfu ? ".\n\n" : "", unit.whose, unit.prefix);
    free(mfu);
    for (int i = 0; i < d->n_roofs && i < TOP; i++) {
        const struct trace_roof *r = &d->roofs[i];
        fputs("| ", to);
        put_name(to, r->op);
        put_name(to, r->shapes);
        fprintf(to, "%s | %s | %s | %s | %s%s |\n", report_show_number(r->count, a), report_show_us(r->device_us, b),
                report_show_number(r->flops > 0 ? r->tflops * unit.of_tera : NAN, c), report_show_number(r->bytes > 0 ? r->gbps : NAN, e),
                report_show_percent(r->percent >= 0 ? r->percent / 100 : NAN, f), r->percent < 0 ? "" : r->by_memory ? " memory" : " products");
    }
}

static void put_modules(FILE *to, const struct diagnosis *d)
{
    number_text a, b, c, e, f;
    if (!d->n_modules)
        return;
    fprintf(to, "\n## %s, per step\n\n| name | count | device, forward | backward | share | host |\n|---|---:|---:|---:|---:|---:|\n",
            d->modules_are_ranges ? "Ranges" : "Modules");
    for (int i = 0; i < d->n_modules && i < TOP; i++) {
        const struct trace_module *m = &d->modules[i];
        fputs("| ", to);
        put_name(to, m->name);
        fprintf(to, "%s | %s | %s | %s | %s |\n", report_show_number(m->count, a), report_show_us(m->forward_us, b), report_show_us(m->backward_us, c),
                report_show_percent(m->share, e), report_show_us(m->host_us, f));
    }
}

static void put_frames(FILE *to, const struct diagnosis *d)
{
    number_text a, b, c;
    if (!d->n_frames)
        return;
    fputs("\n## Python, per step as recorded\n\n| function | self | total | count |\n|---|---:|---:|---:|\n", to);
    for (int i = 0; i < d->n_frames && i < TOP; i++) {
        const struct trace_frame *f = &d->frames[i];
        fputs("| ", to);
        put_name(to, f->name);
        fprintf(to, "%s | %s | %s |\n", report_show_us(f->self_us, a), report_show_us(f->total_us, b), report_show_number(f->count, c));
    }
}

void report_trace_markdown_views(FILE *to, const struct diagnosis *d)
{
    put_roofs(to, d);
    put_modules(to, d);
    put_frames(to, d);
}
