/* The live view in a terminal: the curve of the loss, speed and memory, in a few lines that are drawn anew above the bar. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/live.h"
#include "core/clock.h"
#include "report/report.h"

enum { BLOCKS = 48, PLOT_ROWS = 24, PLOT_COLUMNS = 80 };       /* a screen that is smaller gets no plot */
static const double EVERY_S = 1;

void panel_start(struct panel *p) { *p = (struct panel){.on = stream_is_terminal(stderr)}; }

static bool is_large(void)
{
    struct winsize size = {0};
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_row >= PLOT_ROWS && size.ws_col >= PLOT_COLUMNS;
}

static int columns_of(void)
{
    const int columns = terminal_columns();
    return columns ? columns : PLOT_COLUMNS;
}

/* What is not finite is left out of the plot. */
static void put_plot(FILE *to, const struct curve *c, double floor)
{
    double x[LIVE_POINTS], y[LIVE_POINTS];
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (isfinite(c->point[i].loss)) {
            x[n] = (double)c->point[i].step;
            y[n++] = c->point[i].loss;
        }
    plot_curve(to, x, y, n, floor, "best possible");
}

static void put_speed(FILE *to, const struct curve *c, const struct live_numbers *n)
{
    double speed[LIVE_POINTS];
    char tokens[32] = "-";
    for (int i = 0; i < c->n; i++)
        speed[i] = c->point[i].tokens_per_s;
    if (isfinite(n->tokens_per_s))
        human_count(n->tokens_per_s, tokens);
    const int room = columns_of() - 1 - (int)strlen("speed    tokens/s") - (int)strlen(tokens);
    fputs("speed   ", to);
    if (room > 0)
        report_put_blocks(to, speed, c->n, room - 1 < BLOCKS ? room - 1 : BLOCKS);
    fprintf(to, " %s tokens/s\n", tokens);
}

/* The address stays whole: where the line has no room for it, it gets one of its own. */
static void put_numbers(FILE *to, const struct live_numbers *n, int port)
{
    char memory[32] = "-", loss[32] = "-", validation[48] = "", page[64], line[160];
    if (isfinite(n->memory_bytes))
        human_bytes(n->memory_bytes, memory);
    if (isfinite(n->loss))
        snprintf(loss, sizeof loss, "%.4f", n->loss);
    if (isfinite(n->val_loss))
        snprintf(validation, sizeof validation, ", validation %.4f", n->val_loss);
    snprintf(page, sizeof page, "http://127.0.0.1:%d/", port);
    const int used = snprintf(line, sizeof line, "loss    %s%s | memory %s", loss, validation, memory);
    fprintf(to, "%s%s%s\n", line, used + 3 + (int)strlen(page) < columns_of() ? " | " : "\npage    ", page);
}

static void put_panel(FILE *to, const struct live_run *l)
{
    const struct live_numbers *n = live_run_numbers(l);
    const struct curve *c = &live_run_curves(l)->loss;
    if (is_large())
        put_plot(to, c, n->entropy);
    put_speed(to, c, n);
    put_numbers(to, n, live_run_port(l));
}

/* What is wider than the screen is cut: lines that wrap are more lines than are taken away again. */
static void put_cut(const char *text, FILE *to)
{
    const int columns = columns_of();
    for (int at = 0; *text; text++) {
        at = *text == '\n' ? 0 : at + ((*text & 0xC0) != 0x80);          /* bytes of UTF-8 behind the first take no room */
        if (at < columns || columns >= PLOT_COLUMNS)
            fputc(*text, to);
    }
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

void panel_show(struct panel *p, const struct live_run *l)
{
    char *text = NULL;
    size_t size = 0;
    if (!p->on || !l || (p->lines && clock_s() - p->drawn < EVERY_S))
        return;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return;
    put_panel(to, l);
    if (fclose(to) == 0) {
        panel_clear(p);
        put_cut(text, stderr);
        p->lines = count_lines(text);
        p->drawn = clock_s();
    }
    free(text);
}

void panel_clear(struct panel *p)
{
    if (p->on && p->lines)
        fprintf(stderr, "\r\033[%dA\033[J", p->lines);
    p->lines = 0;
}
