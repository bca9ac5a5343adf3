/* The losses of a run over data.domains as a table. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "train/train.h"

enum { WIDTH_MOST = 16, LABEL = 18 };

/* A word, or the name of a file without its folders; as much of its end as there is room for. */
static const char *short_name(const struct config_names *domains, int i)
{
    const char *name = config_name(domains, i), *slash = strrchr(name, '/');
    const char *text = shown(slash && slash[1] ? slash + 1 : name);
    const size_t length = strlen(text);
    const char *from = length > WIDTH_MOST ? text + length - WIDTH_MOST : text;
    while (((unsigned char)*from & 0xC0) == 0x80)       /* not in the middle of a character */
        from++;
    return from;
}

static int width_of(const struct config_names *domains, int i)
{
    const int length = (int)strlen(short_name(domains, i));
    return length < 9 ? 9 : length;
}

static void print_row(FILE *to, const struct forgetting *f, const struct config_names *domains, const char *label, const double *x,
                      const char *format)
{
    char cell[32];
    fprintf(to, "%-*s", LABEL, label);
    for (int i = 0; i < f->n; i++) {
        snprintf(cell, sizeof cell, format, x[i]);
        fprintf(to, "  %*s", width_of(domains, i), isfinite(x[i]) ? cell : "-");
    }
    fputc('\n', to);
}

void print_forgetting(FILE *to, const struct forgetting *f, const struct config_names *domains)
{
    double percent[DOMAINS_MAX];
    char label[WIDTH_MOST + 16];
    bool known = false;
    if (!f->rows)
        return;
    fprintf(to, "%-*s", LABEL, "validation loss");
    for (int i = 0; i < f->n; i++) {
        fprintf(to, "  %*s", width_of(domains, i), short_name(domains, i));
        percent[i] = forgetting_percent(f, i);
        known |= isfinite(f->entropy[i]);
    }
    fputc('\n', to);
    for (int row = 0; row < f->rows; row++) {
        snprintf(label, sizeof label, row ? "after %s" : "before training", row ? short_name(domains, row - 1) : "");
        print_row(to, f, domains, label, f->loss[row], "%.4f");
    }
    if (known)
        print_row(to, f, domains, "best possible", f->entropy, "%.4f");
    if (f->rows < 3)
        return;
    print_row(to, f, domains, "forgotten", percent, "%+.1f %%");
    fprintf(to, "forgotten: by how much the perplexity is above that after the domain's own stage; backward transfer %+.4f nats\n",
            forgetting_transfer(f));
}
