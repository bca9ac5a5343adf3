/* Self time by layer and kind of op, in report.md. */
#include <math.h>
#include <string.h>

#include "report/report_int.h"

enum { TOP_LAYERS = 16, LAYER_KINDS = 8 };

/* Of all layers (EVERY_LAYER), and of all kinds (NULL). */
enum { EVERY_LAYER = NO_LAYER - 1 };

static double layer_us(const struct profile *p, int layer, const char *kind)
{
    double us = 0;
    for (int i = 0; i < p->n_ops; i++)
        if ((layer == EVERY_LAYER || p->ops[i].layer == layer) && (!kind || (p->ops[i].kind && !strcmp(p->ops[i].kind, kind))))
            us += p->ops[i].self_us;
    return us;
}

/* The largest kinds, then the others together, then all. */
static void put_layer(FILE *to, const struct profile *p, int layer, int kinds)
{
    number_text n;
    double rest = layer_us(p, layer, NULL);
    for (int k = 0; k < kinds; k++) {
        const double us = layer_us(p, layer, p->kinds[k].kind);
        fprintf(to, " %s |", us > 0 ? report_show_us(us, n) : "");
        rest -= us;
    }
    if (p->n_kinds > kinds)
        fprintf(to, " %s |", report_show_us(fmax(rest, 0), n));
    fprintf(to, " %s |", report_show_us(layer_us(p, layer, NULL), n));
}

static void put_layers_head(FILE *to, const struct profile *p, int kinds)
{
    fputs("\n## Self time by layer and kind\n\n| layer |", to);
    for (int k = 0; k < kinds; k++) {
        fputc(' ', to);
        report_put_markdown(to, p->kinds[k].kind);
        fputs(" |", to);
    }
    fprintf(to, "%s all |\n|---|", p->n_kinds > kinds ? " other kinds |" : "");
    for (int k = 0; k < kinds + (p->n_kinds > kinds) + 1; k++)
        fputs("---:|", to);
}

void report_markdown_layers(FILE *to, const struct profile *p)
{
    if (!p->n_ops || p->layers < 1)
        return;
    const int kinds = p->n_kinds < LAYER_KINDS ? p->n_kinds : LAYER_KINDS;
    put_layers_head(to, p, kinds);
    for (int layer = 0; layer < p->layers && layer < TOP_LAYERS; layer++) {
        fprintf(to, "\n| %d |", layer);
        put_layer(to, p, layer, kinds);
    }
    fputs("\n| outside |", to);
    put_layer(to, p, NO_LAYER, kinds);
    fputs("\n| **all** |", to);
    put_layer(to, p, EVERY_LAYER, kinds);
    fputc('\n', to);
    if (p->layers > TOP_LAYERS)
        fprintf(to, "\n%lld more layers are in report.json.\n", (long long)p->layers - TOP_LAYERS);
}
