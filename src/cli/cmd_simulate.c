/* hone simulate: the step on many ranks, from the measured step of one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "dist/dist.h"
#include "lib/peaks.h"
#include "ops/cpu/cpu.h"
#include "prove/simulate.h"
#include "prove/situation.h"
#include "report/report.h"

enum { RANKS_MOST = 1 << 20, GPUS_PER_MACHINE = 8 };

struct asked {
    const char *config, *from, *ranks, *net, *intra, *out;
    struct text_list sets;
    int64_t per_machine, steps;             /* per_machine INT64_MIN: not given */
    bool json;
};

struct simulated {
    struct sim_source source;
    struct simulation s;
    json_t *document;
    char folder[REPORT_FOLDER_MAX];         /* of the report */
};

/* ---- what was asked ---- */

/* "2,4,...,1024": the dots double from the number before them to the one behind. */
static enum status read_ranks(const char *text, int list[SIM_POINTS], int *n, struct error *err)
{
    const char *at = text;
    bool dots = false;
    for (*n = 0; *at;) {
        char *end;
        if (!strncmp(at, "...", 3) || !strncmp(at, "…", 3)) {
            dots = *n > 0 && at[3] == ',';
            if (!dots)
                break;
            at += 4;
            continue;
        }
        errno = 0;
        const long x = strtol(at, &end, 10);
        if (end == at || errno || x < 1 || x > RANKS_MOST || (*end && (*end != ',' || !end[1])))
            break;
        for (long k = dots ? 2L * list[*n - 1] : x; k < x && *n < SIM_POINTS - 2; k *= 2)
            list[(*n)++] = (int)k;
        if (*n == SIM_POINTS - 2)
            return error_set(err, BAD_INPUT, "--ranks has more than %d numbers", SIM_POINTS - 2);
        list[(*n)++] = (int)x;
        dots = false;
        at = *end ? end + 1 : end;
    }
    return *at || dots || !*n ? error_set(err, BAD_INPUT, "--ranks is '%s'; it takes numbers of ranks from 1 to %d, as 2,4,8 or 2,4,...,1024", text, RANKS_MOST)
                              : OK;
}

static enum status read_link(const char *option, const char *text, struct rank_link *to, struct error *err)
{
    double us, gbit;
    char extra;
    if (!text)
        return OK;
    if (sscanf(text, "%lf,%lf%c", &us, &gbit, &extra) != 2 || !isfinite(us) || us < 0 || !isfinite(gbit) || !(gbit > 0))
        return error_set(err, BAD_INPUT, "%s is '%s'; it takes the latency in microseconds and the bandwidth in Gbit/s, as 5,400", option, text);
    *to = (struct rank_link){us, gbit / 8};
    return OK;
}

static int most_of(const int *ranks, int n)
{
    int most = 1;
    for (int i = 0; i < n; i++)
        most = ranks[i] > most ? ranks[i] : most;
    return most;
}

/* ---- links: as given, or as hone doctor measured them ---- */

/* What is known of the machine, by its fingerprint. On CPUs ranks of a machine have a core each at least, however many doctor was started with. */
static int ranks_per_machine(const struct asked *a, bool gpu, int cores, const struct links *known)
{
    if (a->per_machine != INT64_MIN)
        return (int)a->per_machine;
    const int seen = known->machines > 0 ? known->ranks / known->machines : 1;
    return gpu ? GPUS_PER_MACHINE : cores > 0 && seen > cores ? cores : seen;
}

/* Threads of ranks that share cores would take longer than those that were measured. */
static enum status check_cores(const struct sim_net *net, const struct sim_source *s, int most, struct error *err)
{
    const int here = most < net->per_machine ? most : net->per_machine, fit = s->cores / s->threads;
    char or_else[48] = "";
    if (s->gpu || s->cores <= 0 || (int64_t)here * s->threads <= s->cores)
        return OK;
    if (here <= s->cores)
        snprintf(or_else, sizeof or_else, ", or measure with --set threads=%d", s->cores / here);
    return error_set(err, BAD_INPUT, "the rank that was measured has %d thread%s, and %d such ranks are too many for the %d core%s of a machine: give "
                     "--gpus-per-node %d%s", s->threads, s->threads == 1 ? "" : "s", here, s->cores, s->cores == 1 ? "" : "s", fit > 1 ? fit : 1, or_else);
}

static enum status check_links(const struct sim_net *net, const struct sim_source *s, const int *ranks, int n, struct error *err)
{
    const int most = most_of(ranks, n);
    const enum status st = check_cores(net, s, most, err);
    if (st != OK)
        return st;
    for (int i = 0; i < n; i++)
        if (ranks[i] > net->per_machine && ranks[i] % net->per_machine)
            return error_set(err, BAD_INPUT, "--ranks has %d, and machines of %d ranks do not make that; try %d or %d", ranks[i], net->per_machine,
                             ranks[i] / net->per_machine * net->per_machine, (ranks[i] / net->per_machine + 1) * net->per_machine);
    if (!(net->within.gb_per_s > 0) && net->per_machine > 1 && most > 1)
        return error_set(err, BAD_INPUT, "how fast ranks of one machine talk is not known: give --intra US,GBPS%s", s->gpu ? "" : ", or measure it with "
                         "`hone launch -n 2 doctor`");
    if (!(net->between.gb_per_s > 0) && most > net->per_machine)
        return error_set(err, BAD_INPUT, "how fast machines talk is not known, and %d ranks are more than the %d of one machine: give --net US,GBPS%s",
                         most, net->per_machine, s->gpu ? ", or fewer --ranks" : ", fewer --ranks or another --gpus-per-node, or measure it with "
                         "`mpirun --host a,b hone doctor`");
    return OK;
}

static enum status find_net(struct sim_net *net, const struct asked *a, const struct sim_source *s, struct error *err)
{
    struct links known = {0};
    const bool remembered = !s->gpu && links_recall(&known, s->machine);
    *net = (struct sim_net){.ring = s->gpu, .per_machine = ranks_per_machine(a, s->gpu, s->cores, &known), .within = known.within, .between = known.between,
                            .within_measured = remembered && !a->intra, .between_measured = remembered && !a->net};
    const enum status st = read_link("--net", a->net, &net->between, err);
    return st == OK ? read_link("--intra", a->intra, &net->within, err) : st;
}

/* The links of a source, all that these ranks need. */
static enum status settle_net(struct sim_net *net, const struct asked *a, const struct sim_source *s, const int *ranks, int n, struct error *err)
{
    const enum status st = find_net(net, a, s, err);
    return st == OK ? check_links(net, s, ranks, n, err) : st;
}

/* ---- what it starts from ---- */

static void on_progress(void *context, int done, int total)
{
    char text[64];
    snprintf(text, sizeof text, "measuring step %d/%d", done, total);
    progress_show(context, done, text);
}

/* A rank has its part of the cores, as ranks that are started have where nothing else is said. */
static int threads_of(const struct asked *a, int most)
{
    struct cpu_machine m;
    struct links known = {0};
    cpu_machine_read(&m);
    links_recall(&known, m.fingerprint);
    const int there = ranks_per_machine(a, false, m.usable, &known), here = there < most ? there : most;
    return m.usable > here ? m.usable / here : 1;
}

/* What links depend on. */
static void foresee(struct sim_source *s, const struct config *c)
{
    struct cpu_machine m;
    cpu_machine_read(&m);
    s->gpu = c->device == DEVICE_CUDA;
    s->threads = c->threads;
    s->cores = m.usable;
    snprintf(s->machine, sizeof s->machine, "%s", m.fingerprint);
}

static enum status measure(struct sim_source *out, struct config *c, int steps, struct error *err)
{
    struct situation s;
    struct peaks peaks;
    struct progress bar;
    const bool cuda = c->device == DEVICE_CUDA;
    enum status st = known_peaks(c, &peaks, NULL, err);
    if (st != OK)
        return st;
    const struct situation_options options = {
        .steps = steps, .last = true, .peaks = &peaks, .stop = &stop_requested, .progress = on_progress, .context = &bar,
        .device = cuda ? "cuda" : "cpu", .isa = cuda ? peaks.machine : cpu_isa_name(), .blas = cuda ? "cublas" : cpu_blas_name(),
        .usable_cores = cpu_usable_cores()};
    install_stop_handler();
    progress_start(&bar, 0, steps);
    st = situation_measure(&s, c, &options, err);
    progress_clear(&bar);
    if (st != OK)
        return st;
    stop_requested = 0;                 /* Ctrl-C ended the measuring: the steps until then are simulated */
    st = sim_source_measured(out, &s.p, &s.m.config, err);
    situation_release(&s);
    return st;
}

static enum status choose_folder(char folder[REPORT_FOLDER_MAX], const struct asked *a, const char *name, struct error *err)
{
    char named[CONFIG_PATH_MAX + 16];
    snprintf(named, sizeof named, "simulations/%s", name);
    const enum status st = report_folder_name(folder, a->out ? a->out : named, err);
    return st == OK ? report_folder_check(folder, REPORT_SIMULATE, err) : st;
}

static enum status read_saved(struct simulated *s, const struct asked *a, struct error *err)
{
    const enum status st = sim_source_read(&s->source, a->from, a->sets.item, a->sets.n, err);
    return st == OK ? choose_folder(s->folder, a, s->source.config.name, err) : st;
}

/* All that can be wrong is, before the seconds that measuring takes. */
static enum status measure_source(struct simulated *s, const struct asked *a, const int *ranks, int n, struct error *err)
{
    struct config c;
    struct sim_net net;
    enum status st = config_load(&c, a->config, a->sets.item, a->sets.n, err);
    if (st != OK)
        return st;
    if (c.device != DEVICE_CUDA && !c.threads)
        c.threads = threads_of(a, most_of(ranks, n));
    c.dist.shards = 0;                      /* one rank alone has one part; sums of more are no work of the ranks that are simulated */
    foresee(&s->source, &c);
    st = settle_net(&net, a, &s->source, ranks, n, err);
    if (st == OK)
        st = choose_folder(s->folder, a, c.name, err);
    return st == OK ? measure(&s->source, &c, (int)a->steps, err) : st;
}

/* ---- the report ---- */

static enum status write_files(const void *what, const char *folder, struct error *err)
{
    const struct simulated *s = what;
    static const struct { const char *name; document_writer *write; } made[] = {
        {"report.html", report_simulate_write_html}, {"report.md", report_simulate_write_markdown}};
    enum status st = OK;
    for (size_t i = 0; i < sizeof made / sizeof *made && st == OK; i++) {
        char *text = document_written(made[i].write, s->document);
        st = report_folder_add(folder, made[i].name, text, err);
        free(text);
    }
    char *text = json_lines(json_incref(s->document));
    if (st == OK)
        st = report_folder_add(folder, "report.json", text, err);
    free(text);
    return st;
}

static enum status run(struct simulated *s, const struct asked *a, struct error *err)
{
    struct sim_net net;
    int ranks[SIM_POINTS], n;
    enum status st = read_ranks(a->ranks, ranks, &n, err);
    if (st == OK)
        st = a->from ? read_saved(s, a, err) : measure_source(s, a, ranks, n, err);
    if (st == OK)
        st = settle_net(&net, a, &s->source, ranks, n, err);
    if (st == OK) {
        st = simulate(&s->s, &s->source, &net, ranks, n, err);
        if (st == BAD_INPUT && stop_requested)
            return error_stopped(err, "stopped before all ranks were simulated");
    }
    if (st == OK && !(s->document = simulation_json(&s->s)))
        st = error_no_memory(err, "the report", 1 << 16);
    if (st == OK)
        st = report_folder_publish(s->folder, REPORT_SIMULATE, write_files, s, err);
    if (st == OK && a->json)
        return print_document(json_incref(s->document), 12, err);
    if (st == OK) {
        report_simulate_print_terminal(s->document, stdout, stream_has_color(stdout));
        printf("\nreport: %s/report.html   (also report.md, report.json)\n", shown(s->folder));
    }
    return st;
}

static enum status check(const struct asked *a, int positional, struct error *err)
{
    if (ranks_check_alone("simulate", err) != OK)
        return err->status;
    if (!positional == !a->from)
        return error_set(err, BAD_INPUT, positional ? "a CONFIG and --from were given; one of them says what is simulated"
                                                    : "a CONFIG is missing, or --from report.json of a profile");
    if (a->per_machine != INT64_MIN && (a->per_machine < 1 || a->per_machine > RANKS_MOST))
        return error_set(err, BAD_INPUT, "--gpus-per-node is %lld; it takes the ranks of a machine, 1 or more", (long long)a->per_machine);
    if (a->steps < 1 || a->steps > 100000)
        return error_set(err, BAD_INPUT, "--steps is %lld; it must be 1 to 100000", (long long)a->steps);
    return OK;
}

int cmd_simulate(int argc, char **argv)
{
    struct asked a = {.ranks = "2,4,...,1024", .per_machine = INT64_MIN, .steps = 20};
    struct text_list positional = {0};
    const struct option_def options[] = {
        {"--ranks", "LIST", OPTION_TEXT, &a.ranks, "numbers of ranks; dots double (default 2,4,...,1024)"},
        {"--net", "US,GBPS", OPTION_TEXT, &a.net, "latency in us and Gbit/s of a machine's link to others (default: as doctor measured)"},
        {"--intra", "US,GBPS", OPTION_TEXT, &a.intra, "the same between two ranks of one machine"},
        {"--gpus-per-node", "N", OPTION_INT, &a.per_machine, "ranks of a machine (default 8 on GPUs; on CPUs as many as doctor saw, or 1)"},
        {"--from", "FILE", OPTION_TEXT, &a.from, "report.json of hone profile: simulate what was measured there"},
        {"--steps", "N", OPTION_INT, &a.steps, "steps to measure (default 20)"},
        {"--set", "KEY=VALUE", OPTION_LIST, &a.sets, "override a key of the config; may be repeated"},
        {"--out", "DIR", OPTION_TEXT, &a.out, "folder of the report (default simulations/NAME)"},
        {"--json", NULL, OPTION_FLAG, &a.json, "print the report as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "simulate", "CONFIG|--from FILE", "Measures the step of one rank and predicts it on many, each with the same batch: step time, efficiency,\n"
        "communication that nothing hides, the best bucket size, memory. Writes report.html, report.md, report.json.", options,
        "  hone simulate gpt2-124m-b32 --ranks 8,16,...,1024 --net 5,400 --intra 3,3600\n"
        "  hone simulate --from profiles/quickstart/report.json --ranks 2,4 --net 30,10\n", 0, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    struct simulated *s = calloc(1, sizeof *s);
    a.config = positional.n ? positional.item[0] : NULL;
    enum status st = s ? check(&a, positional.n, &err) : error_no_memory(&err, "the result", sizeof *s);
    if (st == OK)
        st = run(s, &a, &err);
    if (s) {
        json_decref(s->document);
        sim_source_release(&s->source);
    }
    free(s);
    return st == OK ? OK : report_error(&err);
}
