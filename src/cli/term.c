/* The terminal: colours where they make sense, a progress bar, a plot made of characters, numbers for people. */
#include <math.h>
#include <string.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/clock.h"

/* One that can move its cursor and show colours: a dumb one is a file that somebody reads. */
bool stream_is_terminal(FILE *f)
{
    const char *term = getenv("TERM");
    return isatty(fileno(f)) && !(term && !strcmp(term, "dumb"));
}

/* NO_COLOR that is there and empty says nothing (no-color.org). */
bool stream_has_color(FILE *f)
{
    const char *none = getenv("NO_COLOR");
    return stream_is_terminal(f) && !(none && *none);
}

const char *style(FILE *f, const char *name)
{
    static const struct { const char *name, *code; } codes[] = {
        {"bold", "\033[1m"}, {"dim", "\033[2m"}, {"green", "\033[32m"}, {"yellow", "\033[33m"}, {"red", "\033[31m"},
        {"off", "\033[0m"},
    };
    if (!stream_has_color(f))
        return "";
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(codes[i].name, name))
            return codes[i].code;
    return "";
}

static void with_unit(double x, const char *const *units, char out[32])
{
    int i = 0;
    while (x >= 999.5 && units[i + 1]) {
        x /= 1000;
        i++;
    }
    snprintf(out, 32, "%.*f%s%s", x < 9.95 && i ? 2 : x < 99.5 && i ? 1 : 0, x, *units[i] ? " " : "", units[i]);
}

void human_bytes(double bytes, char out[32])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", NULL};
    with_unit(bytes, units, out);
}

void human_count(double n, char out[32])
{
    static const char *const units[] = {"", "k", "M", "G", "T", NULL};
    with_unit(n, units, out);
}

void human_rate(double per_s, int decimals, char out[32])
{
    if (fabs(per_s) < 10 && per_s != 0)
        snprintf(out, 32, "%#.3g", per_s);
    else
        snprintf(out, 32, "%.*f", decimals, per_s);
}

void human_time(double seconds, char out[32])
{
    const long s = seconds > 0 ? lround(fmin(seconds, 1e12)) : 0;       /* NAN: 0 */
    if (s >= 3600)
        snprintf(out, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%ld:%02ld", s / 60, s % 60);
}

void progress_start(struct progress *p, int64_t first, int64_t total)
{
    *p = (struct progress){.on = stream_is_terminal(stderr), .start = clock_s(), .first = first, .total = total};
}

int terminal_columns(void)
{
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

/* Bytes of UTF-8 behind the first of a character take no room. */
static int width_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += (*text & 0xC0) != 0x80;
    return n;
}

/* In place of the line that is there. What is wider than the screen is cut: of a line that wraps only the last row would be taken away again. */
static void put_line(const char *text)
{
    const int columns = terminal_columns();
    fputs("\r\033[K", stderr);
    for (int at = 0; *text; text++) {
        at += (*text & 0xC0) != 0x80;
        if (!columns || at < columns)
            fputc(*text, stderr);
    }
    fflush(stderr);
}

enum { BAR_MOST = 28, BAR_LEAST = 6 };          /* columns of a bar; one with less says nothing */

/* A bar as wide as the text beside it leaves room for, with a space behind it; nothing where that is too little. */
static void fill_bar(char out[BAR_MOST * 3 + 2], double share, int beside)
{
    const int columns = terminal_columns(), room = columns ? columns - 2 - beside : BAR_MOST;
    const int width = room < BAR_LEAST ? 0 : room < BAR_MOST ? room : BAR_MOST;
    *out = '\0';
    for (int i = 0; i < width; i++)
        strcat(out, i < (int)(width * share) ? "\u2588" : "\u2591");
    strcat(out, width ? " " : "");
}

static void draw(struct progress *p, const char *text, bool at_once)
{
    const double now = clock_s();
    const int64_t at = p->at;
    if (!p->on || (now - p->last_drawn < 0.1 && !at_once))
        return;
    p->last_drawn = now;
    p->drawn = true;
    const double done = (double)(at - p->first), share = p->total > 0 ? (double)at / (double)p->total : 0;
    char eta[32] = "", beside[256], bar[BAR_MOST * 3 + 2], line[sizeof beside + sizeof bar];
    if (done > 0)
        human_time((now - p->start) / done * (double)(p->total - at), eta);
    snprintf(beside, sizeof beside, "%3d%% %s%s%s", (int)(p->total > 0 ? 100 * at / p->total : 0), text, *eta ? " ETA " : "", eta);
    fill_bar(bar, share, width_of(beside));
    snprintf(line, sizeof line, "%s%s", bar, beside);
    put_line(line);
}

void progress_show(struct progress *p, int64_t at, const char *text)
{
    p->at = at;
    snprintf(p->text, sizeof p->text, "%s", text);
    draw(p, p->text, at >= p->total);
}

void progress_show_bytes(void *context, int64_t bytes, int64_t total)
{
    struct progress *bar = context;
    char text[96], done[32];
    if (bar->total != total)
        progress_start(bar, 0, total);
    human_bytes((double)bytes, done);
    snprintf(text, sizeof text, "%s of text", done);
    progress_show(bar, bytes, text);
}

void progress_note(struct progress *p, const char *text)
{
    if (text || *p->text)
        draw(p, text ? text : p->text, !text);
    else
        progress_clear(p);                  /* it has shown nothing yet */
}

void progress_line(struct progress *p, const char *text)
{
    const double now = clock_s();
    if (!p->on || now - p->last_drawn < 0.1)
        return;
    p->last_drawn = now;
    p->drawn = true;
    put_line(text);
}

void progress_clear(struct progress *p)
{
    if (p->on && p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->drawn = false;
}

enum { PLOT_WIDTH = 64, PLOT_HEIGHT = 10 };

void plot_curve(FILE *to, const double *x, const double *y, int n, double floor, const char *floor_label)
{
    if (n < 2)
        return;
    double low = isfinite(floor) ? floor : y[0], high = low;       /* the line may lie above the whole curve */
    for (int i = 0; i < n; i++) {
        low = fmin(low, y[i]);
        high = fmax(high, y[i]);
    }
    if (!(high > low) || !(x[n - 1] > x[0]))
        return;
    char grid[PLOT_HEIGHT][PLOT_WIDTH + 1];
    for (int r = 0; r < PLOT_HEIGHT; r++) {
        memset(grid[r], ' ', PLOT_WIDTH);
        grid[r][PLOT_WIDTH] = 0;
    }
    if (isfinite(floor)) {
        const int r = (int)lround((high - floor) / (high - low) * (PLOT_HEIGHT - 1));
        for (int c = 0; c < PLOT_WIDTH; c += 2)
            grid[r][c] = '-';
    }
    for (int c = 0, i = 0; c < PLOT_WIDTH; c++) {       /* the value at each column, between its neighbours */
        const double at = x[0] + (x[n - 1] - x[0]) * c / (PLOT_WIDTH - 1);
        while (i + 2 < n && x[i + 1] < at)
            i++;
        const double part = (at - x[i]) / (x[i + 1] - x[i]), v = y[i] + (y[i + 1] - y[i]) * fmin(fmax(part, 0), 1);
        grid[(int)lround((high - v) / (high - low) * (PLOT_HEIGHT - 1))][c] = '*';
    }
    for (int r = 0; r < PLOT_HEIGHT; r++)
        fprintf(to, "%7.3f |%s\n", high - (high - low) * r / (PLOT_HEIGHT - 1), grid[r]);
    fprintf(to, "        +%.*s\n         step %-10.0f%*s%.0f\n", PLOT_WIDTH,
            "----------------------------------------------------------------", x[0], PLOT_WIDTH - 24, "", x[n - 1]);
    if (isfinite(floor))
        fprintf(to, "         * loss   - - %s %.3f\n", floor_label, floor);
}
