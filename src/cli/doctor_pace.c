/* hone doctor: what the cores have just now, of the best that they have shown, and how much of their time is left for it. */
#include <math.h>

#include "cli/doctor.h"
#include "core/clock.h"
#include "core/delay.h"
#include "core/stats.h"

static const double SECONDS = 0.1;
enum { BURSTS_MOST = 512 };

/* The middle of bursts for a while, of `best`. */
static struct pace share_now(struct backend *b, enum numbers numbers, struct pace best)
{
    double gflops[BURSTS_MOST], clock[BURSTS_MOST];
    int n = 0;
    for (const double end = clock_s() + SECONDS; n < BURSTS_MOST && (n == 0 || clock_s() < end); n++) {
        const struct pace now = b->pace(b, numbers);
        gflops[n] = now.gflops;
        clock[n] = now.clock;
    }
    stats_sort(gflops, n);
    stats_sort(clock, n);
    return (struct pace){fmin(stats_percentile(gflops, n, 0.5) / best.gflops, 1), fmin(stats_percentile(clock, n, 0.5) / best.clock, 1)};
}

void doctor_read_pace(struct doctor_pace *p, struct backend *b, const struct peaks *peaks)
{
    *p = (struct doctor_pace){.delayed_share = -1};
    if (!(peaks->clock > 0 && peaks->near_gflops[NUMBERS_F32] > 0))
        return;
    const struct delay delay = delay_begin();
    const struct pace f32 = share_now(b, NUMBERS_F32, (struct pace){peaks->near_gflops[NUMBERS_F32], peaks->clock});
    p->f32 = f32.gflops;
    p->clock = f32.clock;
    if (peaks->near_gflops[NUMBERS_BF16] > 0)
        p->bf16 = share_now(b, NUMBERS_BF16, (struct pace){peaks->near_gflops[NUMBERS_BF16], peaks->clock}).gflops;
    if (delay_is_of_others(b->lanes))
        p->delayed_share = delay_share(&delay, b->lanes);
}

void doctor_print_pace(const struct doctor_pace *p)
{
    if (!(p->f32 > 0))
        return;
    printf("now        cores do small products at %.0f %% of their best in f32", 100 * p->f32);
    if (p->bf16 > 0)
        printf(", %.0f %% in bf16", 100 * p->bf16);
    char words[PACE_WORDS];
    const char *why = pace_words(p->bf16 > 0 ? fmin(p->f32, p->bf16) : p->f32, p->clock, words);
    printf(", their clock is at %.0f %%%s%s\n", 100 * p->clock, why ? ": " : "", why ? why : "");
    if (delay_is_much(p->delayed_share))        /* the middle of short bursts does not show it */
        printf("           %sother work takes the cores for %.0f %% of the time%s: steps take longer by that and more\n", style(stdout, "yellow"), 100 * p->delayed_share,
               style(stdout, "off"));
}

json_t *doctor_pace_json(const struct doctor_pace *p)
{
    if (!(p->f32 > 0))
        return json_null();
    return json_pack("{s:f, s:o, s:f, s:o}", "f32", p->f32, "bf16", p->bf16 > 0 ? json_real(p->bf16) : json_null(), "clock", p->clock, "delayed_share",
                     p->delayed_share < 0 ? json_null() : json_real(p->delayed_share));
}
