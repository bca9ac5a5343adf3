/* The data of the live page. Written by hand, because jansson is watched by the thread that trains (core/json_memory.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/live.h"
#include "core/clean.h"

static void put_number(FILE *to, const char *before, double x)
{
    if (isfinite(x))
        fprintf(to, "%s%.9g", before, x);
    else
        fprintf(to, "%snull", before);
}

static void put_text(FILE *to, const char *before, const char *text)
{
    char *good = text_utf8(text);
    fprintf(to, "%s\"", before);
    for (const unsigned char *c = (const unsigned char *)good; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (*c < ' ' || *c == 0x7F)
            fprintf(to, "\\u%04x", *c);
        else
            fputc(*c, to);
    }
    fputc('"', to);
    free(good);
}

/* As the document of hone compare has it. */
static void put_curve(FILE *to, const char *before, const struct curve *c)
{
    fprintf(to, "%s{\"lines_per_point\":%lld,\"lines\":%lld,\"points\":[", before, (long long)c->each, (long long)c->lines);
    for (int i = 0; i < c->n; i++) {
        const struct curve_point *p = &c->point[i];
        const double numbers[] = {p->tokens, p->seconds, p->loss, p->low, p->high, p->steps_per_s, p->tokens_per_s, p->memory_bytes};
        fprintf(to, "%s[%lld", i ? "," : "", (long long)p->step);
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            put_number(to, ",", numbers[k]);
        fputc(']', to);
    }
    fputs("]}", to);
}

static void put_samples(FILE *to, const struct live_numbers *n)
{
    fputs(",\"samples\":[", to);
    for (int i = 0; i < n->n_samples; i++) {
        fprintf(to, "%s{\"step\":%lld", i ? "," : "", (long long)n->sample[i].step);
        put_text(to, ",\"text\":", n->sample[i].text);
        fputc('}', to);
    }
    fputc(']', to);
}

static void put_all(FILE *to, const struct live_numbers *n, const struct curve *loss, const struct curve *validation)
{
    fprintf(to, "{\"version\":%llu,\"step\":%lld,\"steps\":%lld,\"on_gpu\":%s", (unsigned long long)n->version, (long long)n->step, (long long)n->steps,
            n->on_gpu ? "true" : "false");
    put_text(to, ",\"state\":", n->state);
    put_text(to, ",\"name\":", n->name);
    put_text(to, ",\"device\":", n->device);
    const struct { const char *key; double x; } numbers[] = {
        {",\"loss\":", n->loss}, {",\"val_loss\":", n->val_loss}, {",\"lr\":", n->lr}, {",\"steps_per_s\":", n->steps_per_s}, {",\"tokens_per_s\":", n->tokens_per_s},
        {",\"memory_bytes\":", n->memory_bytes}, {",\"entropy\":", n->entropy}, {",\"eta_s\":", n->eta_s},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_number(to, numbers[i].key, numbers[i].x);
    put_curve(to, ",\"curve\":", loss);
    put_curve(to, ",\"validation\":", validation);
    put_samples(to, n);
    fputs("}\n", to);
}

char *live_json(const struct live_numbers *n, const struct curve *loss, const struct curve *validation)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    put_all(to, n, loss, validation);
    const bool failed = ferror(to);
    if (fclose(to) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}
