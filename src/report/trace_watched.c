/* Steps of a watched program, undisturbed and recorded, side by side: in report.json, report.md and the terminal. */
#include <math.h>
#include <string.h>

#include "core/json_whole.h"
#include "report/trace_watched_int.h"

enum { MOST_ROWS = 8, MOST_NOTES = 8 };

#define N report_number
#define W report_name
#define I(x) ((json_int_t)(x))

/* ---- report.json ---- */

static json_t *window(const struct watched_window *w)
{
    if (!w->steps)
        return json_null();
    return json_pack("{s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "first", I(w->first), "steps", I(w->steps), "step_us", N(w->step_us), "usual_us",
                     N(w->usual_us > 0 ? w->usual_us : NAN), "median_us",
                     N(w->median_us > 0 ? w->median_us : NAN), "fastest_us", N(w->fastest_us > 0 ? w->fastest_us : NAN), "slowest_us",
                     N(w->slowest_us > 0 ? w->slowest_us : NAN));
}

static json_t *rank_json(const struct watched_rank *r)
{
    json_t *notes = json_array();
    for (int i = 0; i < r->n_notes; i++)
        notes = report_array(notes, W(r->notes[i]));
    json_t *who = json_pack("{s:i,s:i,s:o,s:o,s:o,s:o}", "rank", r->rank, "world_size", r->world_size, "torch", W(r->torch), "python", W(r->python),
                            "device", W(r->device), "steps_by", W(r->steps_by));
    json_t *counts = json_pack("{s:I,s:I,s:I,s:o,s:b,s:b,s:o}", "steps", I(r->steps), "backwards_per_step", I(r->backwards), "optimizer_calls_per_step",
                               I(r->calls), "peak_bytes", json_whole(r->peak_bytes > 0 ? r->peak_bytes : NAN), "finished", r->finished, "stopped", r->stopped,
                               "notes", notes);
    return report_merge(report_merge(who, counts), json_pack("{s:o,s:o,s:o}", "undisturbed", window(&r->undisturbed), "recorded_shapes",
                                                             window(&r->shapes), "recorded_stacks", window(&r->stacks)));
}

json_t *report_watched(const struct diagnosis *d)
{
    const struct watched *w = d->watched;
    json_t *ranks = json_array();
    for (int i = 0; w && i < w->n; i++)
        ranks = report_array(ranks, rank_json(&w->ranks[i]));
    if (w)
        return json_pack("{s:o,s:o,s:o}", "command", W(w->command), "ranks", ranks, "trial", report_trial(d));
    json_decref(ranks);
    return json_null();
}

/* ---- words ---- */

enum { WORDS = 160 };

/* "41 steps seen, told by Optimizer.step; 4 backward passes in each" */
static const char *say_steps(const struct watched_rank *r, char out[WORDS])
{
    char more[64] = "";
    if (r->backwards > 1)
        snprintf(more, sizeof more, "; %lld backward passes in each", (long long)r->backwards);
    if (r->calls > 1)
        snprintf(more + strlen(more), sizeof more - strlen(more), "; %lld optimizer calls", (long long)r->calls);
    snprintf(out, WORDS, "%lld step%s seen, told by %.60s%s", (long long)r->steps, r->steps == 1 ? "" : "s", r->steps_by, more);
    return out;
}

/* "11.2 GB at most; rank 1 11.4 GB", of tensors on the device; "" where no rank tells. */
static const char *say_memory(const struct watched *w, char out[WORDS])
{
    number_text n;
    int at = 0;
    *out = '\0';
    for (int i = 0; i < w->n && i < MOST_ROWS && at < WORDS - 48; i++)
        if (w->ranks[i].peak_bytes > 0)
            at += at ? snprintf(out + at, (size_t)(WORDS - at), "; rank %d %s", w->ranks[i].rank, report_show_bytes(w->ranks[i].peak_bytes, n))
                     : snprintf(out, WORDS, "%s at most in tensors on the device", report_show_bytes(w->ranks[i].peak_bytes, n));
    return out;
}

/* What is judged: of undisturbed steps without those that are far from the others, which a note names. */
static double judged_us(const struct watched_window *w) { return w->usual_us > 0 ? w->usual_us : w->step_us; }

/* "steps 12 to 31, each 6.10 ms to 8.34 ms" */
static const char *say_window(const struct watched_window *w, char out[WORDS])
{
    number_text a, b;
    const int n = snprintf(out, WORDS, "steps %lld to %lld", (long long)w->first + 1, (long long)(w->first + w->steps));
    if (w->fastest_us > 0 && w->slowest_us > 0)
        snprintf(out + n, (size_t)(WORDS - n), ", each %s to %s by the host's clock", report_show_us(w->fastest_us, a), report_show_us(w->slowest_us, b));
    return out;
}

static const char *say_slower(const struct watched_window *w, const struct watched_window *undisturbed, char out[WORDS])
{
    number_text n;
    const int at = (int)strlen(say_window(w, out));
    snprintf(out + at, (size_t)(WORDS - at), ", %s of the undisturbed time", report_show_speedup(report_ratio(w->step_us, judged_us(undisturbed)), n));
    return out;
}

/* What the windows are for, below their table. */
static const char WINDOWS[] = "Times of this table are by the program's clock, over all steps of a window. Undisturbed steps run without the profiler: findings are judged by "
                              "them. Recorded ones have its cost in them: ops, kernels and times of parts are read from those with shapes, lines of Python from those with stacks.";

/* ---- report.md ---- */

static void put_row(FILE *to, int rank, const char *what, const struct watched_window *w, const char *words)
{
    number_text n;
    if (w->steps)
        fprintf(to, "| %d | %s | %s | %lld | %s |\n", rank, what, report_show_us(judged_us(w), n), (long long)w->steps, words);
}

static void put_notes(FILE *to, const struct watched_rank *r)
{
    for (int i = 0; i < r->n_notes && i < MOST_NOTES; i++) {
        fprintf(to, "%s- rank %d: ", i ? "" : "\n", r->rank);
        report_put_markdown_cut(to, r->notes[i], 300);
        fputc('\n', to);
    }
}

void report_markdown_watched(FILE *to, const struct diagnosis *d)
{
    const struct watched *w = d->watched;
    char words[WORDS];
    if (!w || !w->n)
        return;
    fputs("\n## Steps undisturbed and recorded\n\n", to);
    report_put_markdown_cut(to, say_steps(&w->ranks[0], words), 300);
    fputs(".\n\n| rank | | step | steps | |\n|---:|---|---:|---:|---|\n", to);
    for (int i = 0; i < w->n && i < MOST_ROWS; i++) {
        const struct watched_rank *r = &w->ranks[i];
        put_row(to, r->rank, "undisturbed", &r->undisturbed, say_window(&r->undisturbed, words));
        put_row(to, r->rank, "recorded with shapes", &r->shapes, say_slower(&r->shapes, &r->undisturbed, words));
        put_row(to, r->rank, "recorded with stacks", &r->stacks, say_slower(&r->stacks, &r->undisturbed, words));
    }
    if (*say_memory(w, words))
        fprintf(to, "\nMemory: %s.\n", words);
    fprintf(to, "\n%s\n", WINDOWS);
    for (int i = 0; i < w->n && i < MOST_ROWS; i++)
        put_notes(to, &w->ranks[i]);
    report_markdown_trial(to, d);
}

/* ---- the terminal ---- */

static void put_line(const struct screen *s, const char *name, const struct watched_window *w, const char *words)
{
    number_text n;
    if (!w->steps)
        return;
    fputs("  ", s->to);
    screen_put_padded(s, name, SCREEN_NAME);
    screen_put_right(s, report_show_us(judged_us(w), n), 9);
    fprintf(s->to, "  %s%s%s\n", screen_style(s, DIM), words, screen_style(s, OFF));
}

static void put_rank(const struct screen *s, const struct watched_rank *r, bool several)
{
    char name[48], words[WORDS];
    const char *const what[] = {"undisturbed", "recorded, shapes", "recorded, stacks"};
    const struct watched_window *const windows[] = {&r->undisturbed, &r->shapes, &r->stacks};
    for (int i = 0; i < 3; i++) {
        const int at = several ? snprintf(name, sizeof name, "%d ", r->rank) : 0;
        snprintf(name + at, sizeof name - (size_t)at, "%s", what[i]);
        put_line(s, name, windows[i], i ? say_slower(windows[i], windows[0], words) : say_window(windows[i], words));
    }
}

static void put_remarks(const struct screen *s, const struct watched *w)
{
    fprintf(s->to, "%s  ", screen_style(s, DIM));
    screen_put_wrapped(s, WINDOWS, 2);
    fputs(screen_style(s, OFF), s->to);
    for (int i = 0; i < w->n && i < MOST_ROWS; i++)
        for (int k = 0; k < w->ranks[i].n_notes && k < MOST_NOTES; k++)
            screen_put_answer(s, "note", w->ranks[i].notes[k]);
}

void screen_put_watched(const struct screen *s, const struct diagnosis *d)
{
    const struct watched *w = d->watched;
    char words[WORDS], more[WORDS + 2];
    if (!w || !w->n)
        return;
    snprintf(more, sizeof more, ", %s", say_steps(&w->ranks[0], words));
    screen_put_heading(s, "Watched", more);
    for (int i = 0; i < w->n && i < MOST_ROWS; i++)
        put_rank(s, &w->ranks[i], w->n > 1);
    if (w->n > MOST_ROWS)
        fprintf(s->to, "  %s%d ranks in all%s\n", screen_style(s, DIM), w->n, screen_style(s, OFF));
    screen_put_answer(s, "memory", say_memory(w, words));
    put_remarks(s, w);
    screen_put_trial(s, d);
}
