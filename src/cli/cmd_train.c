/* hone train */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/live.h"
#include "core/arena.h"
#include "dist/dist.h"
#include "ops/cpu/cpu.h"
#include "report/report.h"
#include "train/train.h"

enum { SAMPLE_COLUMNS = 120 };

/* What is shown while it runs, and the curve for the end. */
struct view {
    FILE *to;                       /* stderr with --json */
    const struct config *config;
    struct progress bar;
    double entropy, recent_rate;
    double *x, *y;
    int n, cap;
    const char *out;                /* the folder of the run */
    struct live_run *live;          /* NULL: nobody asked for it */
    struct panel panel;
    int stage;
};

/* Before a line is printed. */
static void clear(struct view *v)
{
    progress_clear(&v->bar);
    panel_clear(&v->panel);
}

static const char *domain_name(const struct view *v, int i) { return shown(config_name(&v->config->data.domains, i)); }

/* The best possible losses, of those domains whose entropy is known. */
static void print_floors(const struct view *v, const struct forgetting *f)
{
    int known = 0;
    for (int i = 0; i < f->n; i++)
        if (isfinite(f->entropy[i]))
            fprintf(v->to, "%s%s %.4f", known++ ? ", " : "floor   the best possible losses are the true entropies per character: ",
                    domain_name(v, i), f->entropy[i]);
    fputs(known ? "\n" : "", v->to);
}

/* What of the config decides how fast and how steadily it trains, beside the passes; and keys that say nothing. */
static void print_settings(const struct view *v)
{
    const struct config *c = v->config;
    char idle[CONFIG_IDLE_WORDS];
    fprintf(v->to, "how     products in %s, ", config_word("optimize.precision", (int)c->optimize.precision));
    fprintf(v->to, c->train.clip > 0 ? "gradients clipped at a norm of %g, " : "gradients not clipped, ", c->train.clip);
    fprintf(v->to, c->data.workers ? "%lld worker%s up to %lld batches ahead\n" : "batches made between steps\n", (long long)c->data.workers,
            c->data.workers == 1 ? "" : "s", (long long)(c->data.workers * c->data.prefetch));
    for (int at = 0; config_tell_idle(c, &at, idle);)
        fprintf(v->to, "idle    %s\n", shown(idle));
}

static void on_start(void *context, const struct train_info *i)
{
    struct view *v = context;
    char params[32], a[32], b[32], c[32], d[32], all[32], sums[64] = "", gpu[GPU_NAME];
    human_count((double)i->parameters, params);
    human_bytes((double)i->memory.parameters, a);
    human_bytes((double)(i->memory.state - i->memory.sums), b);
    human_bytes((double)i->memory.sums, c);
    if (i->memory.sums)
        snprintf(sums, sizeof sums, ", sums of gradients %s", c);
    human_bytes((double)i->memory.workspace, c);
    human_bytes((double)i->memory.naive_workspace, d);
    human_bytes(exec_memory_bytes(&i->memory), all);
    fprintf(v->to, "%s%s%s: %s with %s parameters on %s ", style(v->to, "bold"), shown(v->config->name), style(v->to, "off"),
            config_word("model.arch", (int)v->config->model.arch), params, i->device);
    if (i->device_name)
        fprintf(v->to, "(%s)\n", i->device_name);
    else
        fprintf(v->to, "(%s, %d thread%s, %s)\n", cpu_isa_name(), i->threads, i->threads == 1 ? "" : "s", cpu_blas_name());
    if (*i->threads_words)
        fprintf(v->to, "threads %s\n", i->threads_words);
    if (v->config->device == DEVICE_AUTO && gpu_listed(GPU_LIST, gpu))
        fprintf(v->to, "device  auto is the CPU, and there is a GPU that is not used: %s; try device: cuda\n", shown(gpu));
    fprintf(v->to, "data    %s\n", shown(i->data));
    if (i->init_tensors)
        fprintf(v->to, "init    %d tensors of %s, %s, from '%s'\n", i->init_tensors, i->init_title, i->init_types, shown(v->config->train.init));
    fprintf(v->to, "memory  %s planned: parameters %s, optimizer state %s%s, workspace %s (%s without the plan)", all, a, b, sums, c, d);
    human_bytes((double)i->memory.inputs, a);
    human_bytes((double)i->memory.scratch, c);
    fprintf(v->to, i->memory.scratch ? ", inputs and tables %s, what kernels work in %s\n" : ", inputs and tables %s\n", a, c);
    fprintf(v->to, "passes  %s\n", i->passes);
    print_settings(v);
    fprintf(v->to, "steps   %lld of %lld tokens", (long long)i->total_steps, (long long)i->tokens_per_step);
    if (i->domains->n)
        fprintf(v->to, ", %lld for each domain", (long long)i->domains->steps_each);
    const bool done = i->first_step && i->first_step >= i->total_steps;
    if (i->first_step)
        fprintf(v->to, done ? ", done already at step %lld" : ", resuming after step %lld", (long long)i->first_step);
    fputc('\n', v->to);
    if (*i->changed && !done)
        fprintf(v->to, "changed %s\n", shown(i->changed));
    print_floors(v, i->domains);
    if (isfinite(i->entropy))
        fprintf(v->to, "floor   the best possible loss on this corpus is %.4f: its true entropy per character\n", i->entropy);
    fflush(v->to);
    v->entropy = i->entropy;
    progress_start(&v->bar, i->first_step, i->total_steps);
    live_run_start(v->live, i, v->out);
}

static void on_step(void *context, int64_t step, double loss)
{
    struct view *v = context;
    char text[96];
    live_run_step(v->live, step);
    panel_show(&v->panel, v->live);
    const int n = snprintf(text, sizeof text, "step %lld/%lld", (long long)step, (long long)v->bar.total);
    if (isfinite(loss))
        snprintf(text + n, sizeof text - (size_t)n, " loss %.4f", loss);
    progress_show(&v->bar, step, text);
}

static void remember(struct view *v, double x, double y)
{
    if (v->n == v->cap) {
        v->cap = v->cap ? 2 * v->cap : 64;
        v->x = xrealloc(v->x, (size_t)v->cap * sizeof *v->x);
        v->y = xrealloc(v->y, (size_t)v->cap * sizeof *v->y);
    }
    v->x[v->n] = x;
    v->y[v->n++] = y;
}

/* "gpu 97 %", or of several ranks "gpus 71 to 97 %, rank 3 least". */
static void put_gpus(FILE *to, const struct train_log *l)
{
    double most = NAN;
    int least = -1;
    for (int r = 0; r < l->n_gpus; r++) {
        const double busy = l->gpus[r].busy_percent;
        if (isfinite(busy) && (least < 0 || busy < l->gpus[least].busy_percent))
            least = r;
        most = fmax(most, busy);
    }
    if (least < 0)
        return;
    if (l->n_gpus == 1)
        fprintf(to, " | gpu %.0f %%", most);
    else
        fprintf(to, " | gpus %.0f to %.0f %%, rank %d least", l->gpus[least].busy_percent, most, least);
}

static void on_log(void *context, const struct train_log *l)
{
    struct view *v = context;
    char rate[32], overall[32], tokens[32];
    clear(v);
    human_rate(l->steps_per_s, 1, rate);
    human_rate(l->steps_per_s_overall, 1, overall);
    human_rate(l->tokens_per_s, 0, tokens);
    fprintf(v->to, "[%lld] loss %.4f | %s step/s (avg %s) | %s tok/s", (long long)l->step, l->loss, rate, overall, tokens);
    if (l->padding_share > 0)
        fprintf(v->to, " (%.0f real, %.1f %% padding)", l->tokens_per_s * (1 - l->padding_share), 100 * l->padding_share);
    fprintf(v->to, " | lr %.2e | grad norm %.2f", l->lr, l->grad_norm);
    put_gpus(v->to, l);
    if (l->data_wait_share > 0.05)
        fprintf(v->to, " | waited %.0f %% for data", l->data_wait_share * 100);
    if (l->domain)
        fprintf(v->to, " | %s", shown(l->domain));
    if (l->skipped)
        fprintf(v->to, " | %lld skipped", (long long)l->skipped);
    for (int i = 0; i < l->n_nodes; i++)
        fprintf(v->to, "%s%d", i ? " " : " | nodes ", (int)l->nodes[i]);
    if (l->ranks > 1)
        fprintf(v->to, " | %.4g s/it on %d ranks (compute %.4g to %.4g, rank %d slowest; waited %.0f %%)", 1 / l->steps_per_s, l->ranks,
                l->compute_least_s, l->compute_most_s, l->slowest_rank, l->rank_wait_share * 100);
    fputc('\n', v->to);
    fflush(v->to);
    if (isfinite(l->loss))
        remember(v, (double)l->step, l->loss);
    live_run_log(v->live, l);
}

static void on_eval(void *context, int64_t step, double val_loss)
{
    struct view *v = context;
    clear(v);
    fprintf(v->to, "[%lld] %svalidation loss %.4f%s", (long long)step, style(v->to, "green"), val_loss, style(v->to, "off"));
    if (isfinite(v->entropy))
        fprintf(v->to, " (%.4f above the best possible)", val_loss - v->entropy);
    fputc('\n', v->to);
    fflush(v->to);
    live_run_eval(v->live, step, val_loss);
}

static void on_stage(void *context, int stage)
{
    struct view *v = context;
    v->stage = stage;
    clear(v);
    fprintf(v->to, "stage %d of %d: %s%s%s\n", stage + 1, config_stages(v->config), style(v->to, "bold"), domain_name(v, stage),
            style(v->to, "off"));
    fflush(v->to);
}

static void on_domains(void *context, int64_t step, const double *losses)
{
    struct view *v = context;
    clear(v);
    fprintf(v->to, "[%lld] %svalidation loss", (long long)step, style(v->to, "green"));
    for (int i = 0; i < config_stages(v->config); i++)
        fprintf(v->to, "%s %s %.4f", i ? "," : "", domain_name(v, i), losses[i]);
    fprintf(v->to, "%s\n", style(v->to, "off"));
    fflush(v->to);
    live_run_eval(v->live, step, losses[v->stage]);
}

static void on_epoch(void *context, const struct train_epoch *e)
{
    struct view *v = context;
    char time[32], samples[32];
    human_time(e->seconds, time);
    human_rate(e->samples_per_s, 1, samples);
    clear(v);
    fprintf(v->to, "epoch %lld: mean loss %.4f, %s", (long long)e->epoch, e->loss, time);
    if (e->steps < e->steps_whole)
        fprintf(v->to, " for %lld of %lld steps", (long long)e->steps, (long long)e->steps_whole);
    fprintf(v->to, ", %s samples/s: %s%s%s (%s)\n", samples, style(v->to, "bold"), e->verdict, style(v->to, "off"), e->words);
    fflush(v->to);
}

static void on_checkpoint(void *context, int64_t step, const char *path)
{
    struct view *v = context;
    clear(v);
    fprintf(v->to, "[%lld] %ssaved %s%s\n", (long long)step, style(v->to, "dim"), shown(path), style(v->to, "off"));
}

/* The beginning of it, in a line. */
static void on_sample(void *context, int64_t step, const char *text)
{
    struct view *v = context;
    clear(v);
    fprintf(v->to, "[%lld] wrote: %s", (long long)step, style(v->to, "dim"));
    report_put_cut(v->to, text, SAMPLE_COLUMNS);
    fprintf(v->to, "%s\n", style(v->to, "off"));
    fflush(v->to);
    live_run_sample(v->live, step, text);
}

static void on_warning(void *context, const char *text)
{
    struct view *v = context;
    clear(v);
    fprintf(stderr, "%swarning:%s %s\n", style(stderr, "yellow"), style(stderr, "off"), shown(text));
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

/* NAN: no step was run, and nothing measured. */
static double rate_of(double per_s) { return per_s > 0 ? per_s : NAN; }

static enum status print_json(const struct train_result *r, struct error *err)
{
    json_t *j = json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:b}", "steps", (json_int_t)r->steps, "loss", number(r->loss),
                          "val_loss", number(r->val_loss), "samples_per_s", number(rate_of(r->samples_per_s)), "tokens_per_s",
                          number(rate_of(r->tokens_per_s)), "checkpoint", json_text(r->checkpoint), "interrupted", r->interrupted);
    if (j && r->padding_share > 0)
        json_object_set_new(j, "padding_share", number(r->padding_share));
    return print_document(j, 9, err);
}

/* How the GPU was, where it tells. */
static void print_gpu(const struct view *v, const struct gpu_watch *w)
{
    char used[32], total[32], warning[WATCH_WORDS];
    if (!w->looks)
        return;
    human_bytes(w->used_most_bytes, used);
    human_bytes(w->total_bytes, total);
    fprintf(v->to, "gpu: busy %.0f %% of the time, %s of %s memory at most, %.0f W, up to %.0f °C (%d look%s, at the logs)\n",
            gpu_watch_busy_percent(w), used, total, gpu_watch_watts(w), w->celsius_most, w->looks, w->looks == 1 ? "" : "s");
    if (gpu_watch_warning(w, warning))
        fprintf(v->to, "%swarning:%s %s\n", style(v->to, "yellow"), style(v->to, "off"), warning);
}

static void print_end(const struct view *v, const struct train_result *r, const char *out)
{
    char samples[32], tokens[32];
    if (!*r->checkpoint) {
        fputs("stopped after 0 steps: the run was still being set up, and nothing of it was written\n", v->to);
        return;
    }
    plot_curve(v->to, v->x, v->y, v->n, v->entropy, "best possible");
    fprintf(v->to, "%s %lld step%s", r->interrupted ? "stopped after" : "done:", (long long)r->steps, r->steps == 1 ? "" : "s");
    if (isfinite(r->loss))
        fprintf(v->to, ", loss %.4f", r->loss);
    if (isfinite(r->val_loss))
        fprintf(v->to, ", validation loss %.4f", r->val_loss);
    if (r->samples_per_s > 0) {
        human_rate(r->samples_per_s, 0, samples);
        human_rate(r->tokens_per_s, 0, tokens);
        fprintf(v->to, ", %s samples/s, %s tokens/s", samples, tokens);
    }
    if (r->padding_share > 0)
        fprintf(v->to, ", %.1f %% of them padding", 100 * r->padding_share);
    fprintf(v->to, "%s\n", r->interrupted ? "; continue with --resume" : "");
    print_gpu(v, &r->gpu);
    print_forgetting(v->to, &r->forgetting, &v->config->data.domains);
    fprintf(v->to, "checkpoint: %s\n", shown(r->checkpoint));
    if (!r->interrupted && v->config->model.arch != ARCH_REGIONS)
        fprintf(v->to, "try: hone generate %s\n", shown_argument(out));
}

/* Where the run can be followed. False: it cannot, and why was told. */
static enum status go_live(struct view *v, const char *port, struct error *err)
{
    const enum status st = port ? live_run_open(&v->live, port, v->config, err) : OK;
    if (st != OK || !port)
        return st;
    fprintf(v->to, "live    http://127.0.0.1:%d/ follows the run, on this machine alone\n", live_run_port(v->live));
    fflush(v->to);
    panel_start(&v->panel);
    return OK;
}

static int train(const struct config *c, const struct train_options *options, const char *live, bool json, struct dist *ranks)
{
    const bool leads = dist_rank(ranks) == 0;
    struct view v = {.to = json ? stderr : stdout, .config = c, .out = options->out};
    const struct train_observer told = {&v, on_start, on_step, on_log, on_eval, on_epoch, on_checkpoint, on_sample, on_warning, on_stage, on_domains},
                                none = {0};
    const struct train_observer observer = leads ? told : none;
    struct train_result result;
    struct error err;
    install_stop_handler();
    enum status st = leads ? go_live(&v, live, &err) : OK;
    st = dist_agree(ranks, st, &err);
    if (st == OK)
        st = train_run(c, options, &observer, &result, &err);
    clear(&v);
    live_run_close(v.live, st != OK ? "failed" : result.interrupted ? "stopped" : "finished");
    if (st == OK && json && leads)
        st = print_json(&result, &err);
    else if (st == OK && leads)
        print_end(&v, &result, options->out);
    free(v.x);
    free(v.y);
    return st == OK ? OK : ranks_report(ranks, &err);
}

/* --steps N, whatever the config says about steps and epochs. */
static enum status set_steps(struct text_list *sets, int64_t steps, char text[64], struct error *err)
{
    if (steps < 1)
        return error_set(err, BAD_INPUT, "--steps is %lld; it must be at least 1", (long long)steps);
    if (sets->n + 2 > MAX_LIST)
        return error_set(err, BAD_INPUT, "--set is given %d times; with --steps at most %d are taken", sets->n, MAX_LIST - 2);
    snprintf(text, 64, "train.steps=%lld", (long long)steps);
    sets->item[sets->n++] = "train.epochs=0";
    sets->item[sets->n++] = text;
    return OK;
}

/* --profile N:M */
static enum status set_window(struct train_options *o, const char *text, struct error *err)
{
    long long first, last;
    char extra;
    if (sscanf(text, "%lld:%lld%c", &first, &last, &extra) != 2 || first < 1 || last < first)
        return error_set(err, BAD_INPUT, "--profile is '%s'; it takes the first and the last step to record, e.g. 100:110", text);
    o->record_first = first;
    o->record_last = last;
    return OK;
}

int cmd_train(int argc, char **argv)
{
    struct text_list sets = {0}, positional = {0};
    struct train_options run = {.stop = &stop_requested};
    const char *window = NULL, *live = NULL;
    int64_t steps = INT64_MIN;      /* not given */
    bool json = false, print = false;
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "override a key of the config; may be repeated"},
        {"--steps", "N", OPTION_INT, &steps, "train so many steps (for each domain), whatever steps and epochs the config has"},
        {"--out", "DIR", OPTION_TEXT, &run.out, "folder of the run (default runs/NAME)"},
        {"--resume", NULL, OPTION_FLAG, &run.resume, "continue the run in that folder from its newest checkpoint"},
        {"--tensorboard", NULL, OPTION_FLAG, &run.tensorboard, "write the metrics for TensorBoard too, into DIR/tensorboard"},
        {"--profile", "N:M", OPTION_TEXT, &window, "record steps N to M into DIR/trace.json (opens in Perfetto)"},
        {"--live", "PORT", OPTION_MAYBE, &live, "follow the run on a page at 127.0.0.1 (any free port) and in the terminal"},
        {"--samples", "N", OPTION_INT, &run.sample_tokens, "let the model write N tokens at every checkpoint, into DIR/samples.jsonl"},
        {"--json", NULL, OPTION_FLAG, &json, "print the result as one JSON document"},
        {"--print-program", NULL, OPTION_FLAG, &print, "print the program of a training step and stop"},
        {0},
    };
    const struct usage usage = {
        "train", "CONFIG", "Trains a model. CONFIG is a YAML file or the name of a shipped one (docs/config.md lists the keys).\n"
        "Ctrl-C, SIGTERM or a terminal that closes: it saves a checkpoint and stops.", options,
        "  hone train quickstart\n  hone train my.yaml --set train.lr=1e-3 --set model.layers=6 --out runs/deep\n"
        "  hone train my.yaml --out runs/deep --resume\n  hone train my.yaml --live --samples 200\n  hone train quickstart --print-program | less\n", 1, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;

    char steps_set[64], folder[512];
    struct config c;
    struct error err;
    if (refuse_json_program(json, print, &err) != OK)
        return ranks_refuse(&err);
    if (steps != INT64_MIN && set_steps(&sets, steps, steps_set, &err) != OK)
        return ranks_refuse(&err);
    if (window && set_window(&run, window, &err) != OK)
        return ranks_refuse(&err);
    if (run.sample_tokens < 0 && error_set(&err, BAD_INPUT, "--samples is %lld; it must not be negative", (long long)run.sample_tokens) != OK)
        return ranks_refuse(&err);
    struct dist *ranks;
    int code = ranks_open(&ranks, &c, positional.item[0], &sets);
    if (code != OK)
        return code;
    run.save_first = getenv(LAUNCH_RETRIES) != NULL;
    snprintf(folder, sizeof folder, "runs/%s", c.name);
    if (!run.out)
        run.out = folder;
    if (!print)
        code = train(&c, &run, live, json, ranks);
    else if (dist_rank(ranks) == 0 && train_print_program(&c, stdout, &err) != OK)
        code = report_error(&err);
    ranks_close(ranks, code);
    return code;
}
