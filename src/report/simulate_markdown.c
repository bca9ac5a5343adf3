/* report.md of hone simulate: what its page shows, as tables. All of it comes from report.json. */
#include "report/fields_int.h"

enum { NAME_MOST = 120 };

static void put_link(FILE *to, const json_t *links, const char *key, const char *label)
{
    const json_t *l = json_object_get(links, key);
    number_text a, b;
    if (json_is_object(l))
        fprintf(to, "| link %s | %s, %s Gbit/s, %s |\n", label, report_show_us(num(l, "us"), a), report_show_number(num(l, "gbit_per_s"), b),
                yes(l, "measured") ? "as hone doctor measured it" : "as given");
}

static void put_top(FILE *to, const json_t *j)
{
    const json_t *links = json_object_get(j, "links");
    number_text a, b, c;
    fputs("# Many ranks: ", to);
    report_put_markdown_cut(to, *word(j, "name") ? word(j, "name") : "a step", NAME_MOST);
    fputs("\n\n**", to);
    report_put_markdown_cut(to, word(j, "headline"), 400);
    fputs(".**\n\n| | |\n|---|---|\n", to);
    report_markdown_fact(to, "device", word(j, "device"));
    report_markdown_fact(to, "machine", word(j, "machine"));
    if (!yes(j, "gpu"))
        fprintf(to, "| threads of a rank | %.0f |\n", num(j, "threads"));
    fprintf(to, "| measured on one rank | %s per step, the median of %.0f (%s to %s, p10 to p90) |\n| samples and tokens per rank | %.0f, %.0f |\n",
            report_show_us(num(j, "step_us"), a), num(j, "steps"), report_show_us(num(j, "p10_us"), b), report_show_us(num(j, "p90_us"), c),
            num(j, "samples_per_rank"), num(j, "tokens_per_rank"));
    fprintf(to, "| sums | %s, %.0f rank%s a machine |\n", word(links, "sum"), num(links, "ranks_per_machine"),
            num(links, "ranks_per_machine") == 1 ? "" : "s");
    put_link(to, links, "within", "within a machine");
    put_link(to, links, "between", "between machines");
    if (*word(j, "warning")) {
        fputs("| warning | ", to);
        report_put_markdown_cut(to, word(j, "warning"), 400);
        fputs(" |\n", to);
    }
    if (yes(j, "shares_cores"))
        fputs("\nRanks of a machine take all its cores, so sums take time from the step and nothing hides them.\n", to);
}

static void put_point(FILE *to, const json_t *p)
{
    number_text a, b, c, d, e, f, g, h, i, k, l;
    fprintf(to, "| %.0f | %.0f | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", num(p, "ranks"), num(p, "machines"),
            report_show_us(num(p, "step_us"), a), report_show_percent(num(p, "efficiency"), b), report_show_count(num(p, "tokens_per_s"), c),
            report_show_us(num(p, "compute_us"), d), report_show_us(num(p, "packing_us"), e), report_show_us(num(p, "sums_us"), f),
            report_show_us(num(p, "exposed_us"), g), report_show_us(num(p, "slowest_us"), h), report_show_bucket(num(p, "best_bucket_mb"), l),
            report_show_us(num(p, "best_step_us"), i), report_show_bytes(num(p, "memory_bytes"), k));
}

enum status report_simulate_write_markdown(const json_t *simulated, FILE *to, struct error *err)
{
    const json_t *p;
    number_text n;
    size_t i;
    (void)err;
    put_top(to, simulated);
    fprintf(to, "\n## By ranks\n\nEvery rank has the batch of the one that was measured. Step = compute + packing + exposed + slowest, with buckets of %s.\n\n"
            "| ranks | machines | step | efficiency | tokens/s | compute | packing | sums | exposed | slowest | best bucket | step with it | memory |\n"
            "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", report_show_bucket(num(simulated, "bucket_mb"), n));
    json_array_foreach(json_object_get(simulated, "points"), i, p)
        put_point(to, p);
    fputs("\nPacking: buckets are filled and emptied. Sums: on one queue beside backward. Exposed: what is not hidden of them. Slowest: what the slowest\n"
          "of all ranks takes longer than a usual one, by drawing from the measured steps. Memory: of one rank, as planned.\n", to);
    return OK;
}
