/* The two programs at other sizes, in report.md of hone tune: times where they were measured, and the planned memory of all. */
#include <stdlib.h>

#include "core/arena.h"
#include "report/fields_int.h"
#include "report/tune_markdown_int.h"

struct sizes {
    const json_t **list;                    /* (n) the smaller first, each once */
    size_t n;
};

static bool is_measured(const json_t *s) { return isfinite(num(json_object_get(s, "before"), "step_us")); }

static int compare(const json_t *a, const json_t *b)
{
    const double batch = num(a, "batch") - num(b, "batch"), seq = num(a, "seq") - num(b, "seq");
    return batch < 0 ? -1 : batch > 0 ? 1 : seq < 0 ? -1 : seq > 0;
}

/* Equal ones: that which was measured first. */
static int by_size(const void *a, const void *b)
{
    const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
    const int c = compare(x, y);
    return c ? c : is_measured(y) - is_measured(x);
}

static struct sizes sort_sizes(const json_t *list)
{
    struct sizes all = {xcalloc(json_array_size(list) + 1, sizeof *all.list), 0};
    const json_t *s;
    size_t i, kept = 0;
    json_array_foreach(list, i, s)
        all.list[i] = s;
    qsort(all.list, json_array_size(list), sizeof *all.list, by_size);
    for (i = 0; i < json_array_size(list); i++)
        if (!kept || compare(all.list[kept - 1], all.list[i]))
            all.list[kept++] = all.list[i];
    all.n = kept;
    return all;
}

/* "all hold", or those that do not. */
static void put_gates_shortly(FILE *to, const json_t *s)
{
    const json_t *list = json_object_get(s, "gates"), *g;
    bool any = false;
    size_t i;
    json_array_foreach(list, i, g) {
        if (yes(g, "pass"))
            continue;
        fprintf(to, "%s%s: %s", any ? ", " : "", word(g, "gate"), word(g, "outcome"));
        any = true;
    }
    if (!any)
        fputs(length(s, "gates") ? "all hold" : "–", to);
}

static void put_measured(FILE *to, const json_t *j, const struct sizes *all)
{
    number_text a, b;
    bool any = false;
    for (size_t i = 0; i < all->n; i++) {
        const json_t *s = all->list[i];
        if (!is_measured(s))
            continue;
        if (!any)
            fprintf(to, "\n| batch × sequence | step %s | tuned | speed-up | gates |\n|---|---:|---:|---:|---|\n", given_label(j));
        any = true;
        fprintf(to, "| %.0f × %.0f | %s | %s | ", num(s, "batch"), num(s, "seq"), report_show_us(num(json_object_get(s, "before"), "step_us"), a),
                report_show_us(num(json_object_get(s, "after"), "step_us"), b));
        put_times(to, num(s, "speedup"));
        fputs(" | ", to);
        put_gates_shortly(to, s);
        fputs(" |\n", to);
    }
}

static void put_planned(FILE *to, const json_t *point)
{
    number_text n;
    fprintf(to, "%s%s | ", report_show_bytes(num(point, "planned_bytes"), n),
            json_is_false(json_object_get(point, "fits")) ? " (does not fit)" : "");
}

static void put_memory(FILE *to, const json_t *j, const struct sizes *all)
{
    fprintf(to, "\n| batch × sequence | planned memory %s | tuned | change |\n|---|---:|---:|---:|\n", given_label(j));
    for (size_t i = 0; i < all->n; i++) {
        const json_t *s = all->list[i], *a = json_object_get(s, "before"), *b = json_object_get(s, "after");
        fprintf(to, "| %.0f × %.0f | ", num(s, "batch"), num(s, "seq"));
        put_planned(to, a);
        put_planned(to, b);
        put_percent(to, num(b, "planned_bytes") / num(a, "planned_bytes") - 1);
        fputs(" |\n", to);
    }
    fputs("\nWhat does not fit needs more than this machine had free.\n", to);
}

void tune_put_sizes(FILE *to, const json_t *j)
{
    if (!length(j, "sizes"))
        return;
    struct sizes all = sort_sizes(json_object_get(j, "sizes"));
    fputs("\n## At other sizes\n", to);
    put_measured(to, j, &all);
    put_memory(to, j, &all);
    free(all.list);
}
