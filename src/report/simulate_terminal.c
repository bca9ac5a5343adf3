/* hone simulate on the terminal: a row for each number of ranks. */
#include "report/fields_int.h"
#include "report/terminal_int.h"

static void put_link(const struct screen *s, const json_t *links, const char *key, const char *words)
{
    const json_t *l = json_object_get(links, key);
    number_text a, b;
    if (json_is_object(l))
        fprintf(s->to, ", %s %s and %s Gbit/s%s", words, report_show_us(num(l, "us"), a), report_show_number(num(l, "gbit_per_s"), b),
                yes(l, "measured") ? " (hone doctor)" : "");
}

static void put_facts(const struct screen *s, const json_t *j)
{
    const json_t *links = json_object_get(j, "links");
    number_text a, b, c;
    screen_put_label(s, "measured");
    fprintf(s->to, "%s per step of %.0f sample%s on one rank, the median of %.0f step%s (%s to %s, p10 to p90); ", report_show_us(num(j, "step_us"), a),
            num(j, "samples_per_rank"), num(j, "samples_per_rank") == 1 ? "" : "s", num(j, "steps"), num(j, "steps") == 1 ? "" : "s", report_show_us(num(j, "p10_us"), b), report_show_us(num(j, "p90_us"), c));
    report_put_text(s->to, word(j, "device"));
    if (!yes(j, "gpu"))
        fprintf(s->to, ", %.0f thread%s", num(j, "threads"), num(j, "threads") == 1 ? "" : "s");
    fprintf(s->to, "\n");
    screen_put_label(s, "links");
    fprintf(s->to, "%s of %.0f rank%s a machine", word(links, "sum"), num(links, "ranks_per_machine"), num(links, "ranks_per_machine") == 1 ? "" : "s");
    put_link(s, links, "within", "within it");
    put_link(s, links, "between", "between them");
    fprintf(s->to, "\n");
    if (yes(j, "shares_cores"))
        screen_put_answer(s, "cores", "Ranks of a machine take all its cores, so sums take time from the step and nothing hides them.");
}

static void put_point(const struct screen *s, const json_t *p)
{
    number_text n;
    fprintf(s->to, "  %6.0f", num(p, "ranks"));
    screen_put_right(s, report_show_us(num(p, "step_us"), n), 10);
    screen_put_right(s, report_show_percent(num(p, "efficiency"), n), 11);
    screen_put_right(s, report_show_count(num(p, "tokens_per_s"), n), 10);
    screen_put_right(s, report_show_us(num(p, "packing_us"), n), 10);
    screen_put_right(s, report_show_us(num(p, "exposed_us"), n), 10);
    screen_put_right(s, report_show_us(num(p, "slowest_us"), n), 10);
    screen_put_right(s, report_show_us(num(p, "sums_us"), n), 10);
    screen_put_right(s, report_show_bucket(num(p, "best_bucket_mb"), n), 12);
    screen_put_right(s, report_show_bytes(num(p, "memory_bytes"), n), 10);
    fputc('\n', s->to);
}

void report_simulate_print_terminal(const json_t *simulated, FILE *to, bool color)
{
    const struct screen s = {to, color};
    const json_t *p;
    number_text n;
    size_t i;
    fputs(screen_style(&s, BOLD), to);
    screen_put_wrapped(&s, word(simulated, "headline"), 0);
    fprintf(to, "%s\n", screen_style(&s, OFF));
    if (*word(simulated, "warning"))
        screen_put_answer(&s, "warning", word(simulated, "warning"));
    put_facts(&s, simulated);
    fprintf(to, "\n  %s%6s%10s%11s%10s%10s%10s%10s%10s%12s%10s%s\n", screen_style(&s, DIM), "ranks", "step", "efficiency", "tokens/s", "packing", "exposed",
            "slowest", "sums", "best bucket", "memory", screen_style(&s, OFF));
    json_array_foreach(json_object_get(simulated, "points"), i, p)
        put_point(&s, p);
    fprintf(to, "  %severy rank has the batch of the one that was measured; a step is that of one rank, and packing (buckets filled and emptied),\n"
            "  exposed (of the sums, what backward does not hide) and slowest (what the slowest of all ranks takes longer than a usual one);\n"
            "  buckets of %s but for the best one; memory: values of one rank, as planned%s\n",
            screen_style(&s, DIM), report_show_bucket(num(simulated, "bucket_mb"), n), screen_style(&s, OFF));
}
