/* What report.md and the terminal of hone forget share: numbers over seeds and words, from its report.json. */
#ifndef HONE_REPORT_FORGET_TEXT_INT_H
#define HONE_REPORT_FORGET_TEXT_INT_H

#include "report/fields_int.h"

/* "0.123 ± 0.004", or a dash; `digits` behind the point. Returns `out`. */
static inline const char *show_spread(const json_t *config, const char *key, int digits, bool sign, number_text out)
{
    const json_t *s = json_object_get(config, key);
    const double mean = num(s, "mean"), sd = num(s, "sd");
    if (!isfinite(mean))
        return strcpy(out, "–");
    const int n = snprintf(out, NUMBER_TEXT, sign ? "%+.*f" : "%.*f", digits, mean);
    if (isfinite(sd) && n > 0 && n < NUMBER_TEXT)
        snprintf(out + n, (size_t)(NUMBER_TEXT - n), " ± %.*f", digits, sd);
    return out;
}

/* Percent: behind the point only where they are few. */
static inline const char *show_percents(const json_t *config, const char *key, number_text out)
{
    return show_spread(config, key, fabs(num(json_object_get(config, key), "mean")) < 100 ? 1 : 0, false, out);
}

/* "5 of 13 by gradient"; what of the config learns. Returns `out`. */
static inline const char *show_choice(const json_t *config, char out[64])
{
    const char *choice = word(config, "choice");
    if (!strcmp(choice, "none"))
        snprintf(out, 64, "%.0f blocks in a row", num(config, "layers"));
    else if (!strcmp(choice, "all"))
        snprintf(out, 64, "all %.0f nodes", num(config, "nodes"));
    else
        snprintf(out, 64, "%.0f of %.0f%s", num(config, "k"), num(config, "nodes"),
                 !strcmp(choice, "gradient") ? " by gradient" : !strcmp(choice, "random") ? (num(config, "every") > 1 ? " at random, kept" : " at random") : "");
    return out;
}

static inline const char *above_words(const json_t *j) { return yes(j, "entropy_known") ? "nats above the best possible" : "nats"; }
static inline const json_t *item(const json_t *j, const char *key, size_t i) { return json_array_get(json_object_get(j, key), i); }

/* The domain whose stage is row `stage` of a matrix; row 0 is before training. */
static inline const char *stage_name(const json_t *j, size_t stage)
{
    return stage ? word(item(j, "domains", stage - 1), "name") : "no training";
}

static inline const char *outcome_words(const char *outcome)
{
    return !strcmp(outcome, "beats") ? "beats it" : !strcmp(outcome, "ties") ? "no different within the spread"
           : !strcmp(outcome, "no overlap") ? "not comparable: one learned more and forgot more" : outcome;
}

#endif
