/* hone doctor on several ranks: how fast they talk to each other. */
#include "cli/doctor.h"
#include "dist/dist.h"
#include "ops/cpu/cpu.h"

int doctor_read_ranks(struct doctor_ranks *r)
{
    struct dist *d = NULL;
    struct cpu_machine cpu;
    struct error err;
    int code = ranks_join(&d);
    if (code != OK || !d)
        return code;
    r->there = dist_size(d) > 1;
    r->leads = dist_rank(d) == 0;
    if (dist_measure_links(d, &r->links, &err) != OK)
        code = ranks_report(d, &err);
    ranks_close(d, code);               /* the others do not take cores away while the rest is measured */
    cpu_machine_read(&cpu);
    snprintf(r->links.machine, sizeof r->links.machine, "%s", cpu.fingerprint);
    if (code == OK && r->there && r->leads)
        links_remember(&r->links, NULL);        /* no harm if it cannot be written */
    return code;
}

static void print_link(const char *which, const struct rank_link *l)
{
    if (l->gb_per_s > 0)
        printf("           %-18s %10.1f %10.2f %12.1f\n", which, l->us, l->gb_per_s, 8 * l->gb_per_s);
}

void doctor_print_ranks(const struct doctor_ranks *r)
{
    if (!r->there)
        return;
    printf("links      %d ranks, %d machine%s: us one way, GB/s and Gbit/s in each direction while all pairs talk\n", r->links.ranks, r->links.machines,
           r->links.machines == 1 ? "" : "s");
    print_link("within a machine", &r->links.within);
    print_link("between machines", &r->links.between);
}

static json_t *link_json(const struct rank_link *l)
{
    return l->gb_per_s > 0 ? json_pack("{s:f, s:f}", "us", l->us, "gb_per_s", l->gb_per_s) : json_null();
}

json_t *doctor_ranks_json(const struct doctor_ranks *r)
{
    if (!r->there)
        return json_null();
    return json_pack("{s:i, s:i, s:o, s:o}", "ranks", r->links.ranks, "machines", r->links.machines, "within", link_json(&r->links.within),
                     "between", link_json(&r->links.between));
}
