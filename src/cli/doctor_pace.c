/* hone doctor: what the cores have just now, of the best that they have shown. */
#include "cli/doctor.h"
#include "core/clock.h"
#include "core/stats.h"

static const double SECONDS = 0.1, LITTLE = 0.8;
enum { BURSTS_MOST = 512 };

/* The middle of bursts for a while, of `best`; 0: there are no such instructions. */
static double share_now(struct backend *b, enum numbers numbers, double best)
{
    double pace[BURSTS_MOST];
    int n = 0;
    for (const double end = clock_s() + SECONDS; best > 0 && n < BURSTS_MOST && (n == 0 || clock_s() < end); n++)
        pace[n] = b->pace(b, numbers);
    stats_sort(pace, n);
    const double share = n ? stats_percentile(pace, n, 0.5) / best : 0;
    return share < 1 ? share : 1;
}

void doctor_read_pace(struct doctor_pace *p, struct backend *b, const struct peaks *peaks)
{
    p->f32 = share_now(b, NUMBERS_F32, peaks->registers_gflops);
    p->bf16 = share_now(b, NUMBERS_BF16, peaks->registers_bf16_gflops);
}

void doctor_print_pace(const struct doctor_pace *p)
{
    printf("now        registers have %.0f %% of their best in f32", 100 * p->f32);
    if (p->bf16 > 0)
        printf(", %.0f %% in bf16", 100 * p->bf16);
    puts(p->f32 < LITTLE || (p->bf16 > 0 && p->bf16 < LITTLE) ? ": other systems or programs share the cores, or heat or power holds them down" : "");
}

json_t *doctor_pace_json(const struct doctor_pace *p)
{
    return json_pack("{s:f, s:o}", "f32", p->f32, "bf16", p->bf16 > 0 ? json_real(p->bf16) : json_null());
}
