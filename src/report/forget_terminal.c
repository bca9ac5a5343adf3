/* The screen of hone forget: losses by stage and domain, what each config learned and forgot, and the verdict. */
#include "report/forget_text_int.h"
#include "report/terminal_int.h"

enum { NAME = 20, CELL = 17, SPREAD = 16 };     /* columns */

static void put_cell(const struct screen *s, const json_t *cell)
{
    char text[64];
    const double loss = num(cell, "loss"), above = num(cell, "above_entropy");
    if (!isfinite(loss))
        snprintf(text, sizeof text, "–");
    else if (isfinite(above))
        snprintf(text, sizeof text, "%.3f (%+.3f)", loss, above);
    else
        snprintf(text, sizeof text, "%.3f", loss);
    screen_put_right(s, text, CELL);
}

static void put_matrix(const struct screen *s, const json_t *j, const json_t *c)
{
    const json_t *row, *cell;
    size_t i, k;
    json_array_foreach(json_object_get(c, "matrix"), i, row) {
        fputs("  ", s->to);
        screen_put_padded(s, i ? "" : word(c, "name"), NAME);
        fputs(" ", s->to);
        screen_put_padded(s, stage_name(j, i), 12);
        json_array_foreach(row, k, cell)
            put_cell(s, cell);
        fputc('\n', s->to);
    }
}

static void put_matrices(const struct screen *s, const json_t *j)
{
    const json_t *c, *d;
    size_t i;
    screen_put_heading(s, "Validation loss after each stage", yes(j, "entropy_known") ? " (and its distance to the best possible one)" : "");
    fprintf(s->to, "  %-*s %-12s", NAME, "", "after");
    json_array_foreach(json_object_get(j, "domains"), i, d)
        screen_put_right(s, word(d, "name"), CELL);
    fputc('\n', s->to);
    json_array_foreach(json_object_get(j, "configs"), i, c)
        put_matrix(s, j, c);
}

static void put_config(const struct screen *s, const json_t *c)
{
    number_text n;
    char choice[64];
    fputs("  ", s->to);
    screen_put_padded(s, word(c, "name"), NAME);
    fputc(' ', s->to);
    screen_put_padded(s, show_choice(c, choice), 19);
    screen_put_right(s, show_spread(c, "new_loss", 3, false, n), SPREAD);
    screen_put_right(s, show_spread(c, "forgotten_nats", 3, false, n), SPREAD);
    screen_put_right(s, show_percents(c, "forgotten_percent", n), SPREAD);
    screen_put_right(s, show_spread(c, "backward_transfer", 3, true, n), SPREAD + 1);
    screen_put_right(s, show_spread(c, "end_loss", 3, false, n), SPREAD);
    fputc('\n', s->to);
}

static void put_configs(const struct screen *s, const json_t *j)
{
    const json_t *c;
    size_t i;
    screen_put_heading(s, "Learned and forgotten", ", mean ± standard deviation over seeds");
    fprintf(s->to, "  %-*s %-19s", NAME, "config", "learns");
    screen_put_right(s, "new domains", SPREAD);
    screen_put_right(s, "forgotten", SPREAD);
    screen_put_right(s, "%", SPREAD);
    screen_put_right(s, "back. transfer", SPREAD + 1);
    screen_put_right(s, "all at the end", SPREAD);
    fputc('\n', s->to);
    json_array_foreach(json_object_get(j, "configs"), i, c)
        put_config(s, c);
    fprintf(s->to, "  %snew domains: after their own stage, in %s; forgotten: nats lost since then%s\n", screen_style(s, DIM), above_words(j),
            screen_style(s, OFF));
}

static void put_answer(const struct screen *s, const json_t *v, const char *than, const char *answer, const char *words)
{
    const char *a = word(v, answer);
    fprintf(s->to, "  %s against %s: %s%s%s\n  ", "by gradient", than, screen_style(s, !strcmp(a, "yes") ? GREEN : BOLD), a, screen_style(s, OFF));
    screen_put_wrapped(s, word(v, words), 2);
}

void report_forget_print_terminal(const json_t *forget, FILE *to, bool color)
{
    const struct screen s = {to, color};
    const json_t *v;
    size_t i;
    put_matrices(&s, forget);
    put_configs(&s, forget);
    fprintf(to, "\n%s", screen_style(&s, BOLD));
    screen_put_wrapped(&s, word(forget, "headline"), 0);
    fputs(screen_style(&s, OFF), to);
    json_array_foreach(json_object_get(forget, "verdicts"), i, v) {
        put_answer(&s, v, "as many at random", "beats_random", "random_words");
        put_answer(&s, v, "all nodes", "beats_all", "all_words");
    }
}
