/* From the trial of a watched program to its diagnosis: which measurement answers which finding. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clean.h"
#include "watch/watch.h"

enum { MOST_FIXES = 64 };

static double number(const json_t *one, const char *key)
{
    const json_t *x = json_object_get(one, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* False: it was not measured to its end. One that failed a gate says nothing of what the fix would win. */
static bool read_fix(struct measured_fix *f, const json_t *one)
{
    const char *state = json_string_value(json_object_get(one, "state"));
    *f = (struct measured_fix){.rule = json_string_value(json_object_get(one, "rule")), .name = json_string_value(json_object_get(one, "name")),
                               .speedup = number(one, "speedup"), .low = number(one, "low"), .high = number(one, "high"),
                               .won = state && !strcmp(state, "kept")};
    return f->rule && f->name && state && (f->won || !strcmp(state, "no gain")) && isfinite(f->speedup) && isfinite(f->low) && isfinite(f->high) && f->low > 0 &&
           f->low <= f->speedup && f->speedup <= f->high;
}

/* Of several that answer the same finding the best counts. */
static void add(struct measured_fix *list, int *n, const struct measured_fix *f)
{
    int at = 0;
    while (at < *n && strcmp(list[at].rule, f->rule))
        at++;
    if (at == MOST_FIXES || (at < *n && (list[at].won > f->won || (list[at].won == f->won && list[at].speedup >= f->speedup))))
        return;
    list[at] = *f;
    *n += at == *n;
}

void watched_take_measured(struct diagnosis *d, const struct watched *w)
{
    struct measured_fix list[MOST_FIXES], f;
    int n = 0;
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(w->trial, "switches"), i, one)
        if (read_fix(&f, one))
            add(list, &n, &f);
    for (int k = 0; k < n; k++) {
        char *clean = text_clean(list[k].name);         /* of the program's own process: nothing of it is shown as it is */
        list[k].name = arena_printf(&d->arena, "%.60s", clean);
        free(clean);
    }
    diagnosis_take_measured(d, list, n);
}
