/* hone eval */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "train/train.h"

static double bits_per_token(const struct eval_loss *l) { return l->loss / M_LN2; }
static double bits_per_byte(const struct eval_loss *l) { return l->bytes > 0 ? l->loss * l->tokens / l->bytes / M_LN2 : NAN; }

/* Of the data, what is looked at. */
enum part { PART_VALIDATION, PART_TRAIN, PART_ALL };

/* ---- JSON ---- */

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *loss_json(const struct eval_loss *l)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "loss", number(l->loss), "perplexity", number(exp(l->loss)),
                     "bits_per_token", number(bits_per_token(l)), "bits_per_byte", number(bits_per_byte(l)), "entropy",
                     number(l->entropy), "above_entropy", number(l->loss - l->entropy), "tokens", (json_int_t)l->tokens, "bytes",
                     l->bytes > 0 ? json_integer((json_int_t)l->bytes) : json_null());
}

static json_t *domains_json(const struct eval_result *r)
{
    json_t *list = json_array();
    for (int i = 0; list && i < r->n; i++) {
        json_t *one = loss_json(&r->domains[i]);
        if (one && json_object_set_new(one, "name", json_text(r->domains[i].name)) == 0 && json_array_append(list, one) == 0) {
            json_decref(one);
            continue;
        }
        json_decref(one);
        json_decref(list);
        list = NULL;
    }
    return list;
}

static enum status print_json(const struct eval_result *r, enum part part, struct error *err)
{
    json_t *j = json_pack("{s:o, s:I, s:s, s:o, s:o, s:b, s:o}", "checkpoint", json_text(r->checkpoint), "step", (json_int_t)r->step,
                          "split", (const char *[]){"validation", "train", "all"}[part], "batches", r->first ? json_integer(r->first) : json_null(), "data", json_text(r->data), "interrupted", r->interrupted,
                          "domains", domains_json(r));
    json_t *all = loss_json(&r->all);
    const bool made = j && all && json_object_update(j, all) == 0;
    json_decref(all);
    if (!made) {
        json_decref(j);
        j = NULL;
    }
    return print_document(j, 9, err);
}

/* ---- text ---- */

static void cell(const char *format, double x)
{
    char text[32];
    snprintf(text, sizeof text, format, x);
    printf("  %11s", isfinite(x) ? text : "-");
}

static void print_row(const char *name, const struct eval_loss *l, int width)
{
    printf("%-*s", width, name);
    cell("%.4f", l->loss);
    cell("%.4f", l->loss - l->entropy);
    cell("%.5g", exp(l->loss));
    cell("%.4f", bits_per_token(l));
    cell("%.4f", bits_per_byte(l));
    cell("%.0f", l->tokens);
    putchar('\n');
}

static void print_table(const struct eval_result *r)
{
    int width = 3;
    for (int i = 0; i < r->n; i++) {
        const int length = (int)strlen(shown(r->domains[i].name));
        width = length > width ? length : width;
    }
    printf("%-*s  %11s  %11s  %11s  %11s  %11s  %11s\n", width, "", "loss", "above best", "perplexity", "bits/token", "bits/byte",
           "tokens");
    for (int i = 0; i < r->n; i++)
        print_row(shown(r->domains[i].name), &r->domains[i], width);
    if (r->n > 1)
        print_row("all", &r->all, width);
}

static void print_one(const struct eval_loss *l)
{
    printf("loss        %.4f", l->loss);
    if (isfinite(l->entropy))
        printf(" (%.4f above the best possible, %.4f)", l->loss - l->entropy, l->entropy);
    printf("\nperplexity  %.5g\nbits        %.4f per token", exp(l->loss), bits_per_token(l));
    if (l->bytes > 0)
        printf(", %.4f per byte", bits_per_byte(l));
    printf("\ntokens      %.0f\n", l->tokens);
}

static void print_text(const struct eval_result *r, enum part part)
{
    printf("checkpoint  %s, step %lld\n", shown(r->checkpoint), (long long)r->step);
    printf("data        %s\n", shown(r->data));
    const char *const all = r->lines ? "all, by lines" : "all, in whole windows";
    char first[64] = "";
    if (r->first)
        snprintf(first, sizeof first, ", the first %lld batch%s%s", (long long)r->first, r->first == 1 ? "" : "es", r->n > 1 ? " of each" : "");
    printf("part        %s%s%s\n", (const char *[]){"validation", "training", all}[part], first, r->interrupted ? ", stopped before the end of it" : "");
    if (r->n)
        print_table(r);
    else
        print_one(&r->all);
}

/* ---- the command ---- */

static void on_progress(void *context, int64_t done, int64_t total)
{
    struct progress *bar = context;
    char text[64];
    if (!bar->total)
        progress_start(bar, 0, total);
    snprintf(text, sizeof text, "batch %lld/%lld", (long long)done, (long long)total);
    progress_show(bar, done, text);
}

enum { SPLIT_OF_TRAINING, SPLIT_OF_VALIDATION };
static const char *const splits[] = {[SPLIT_OF_TRAINING] = "train", [SPLIT_OF_VALIDATION] = "validation", NULL};

/* ---- data of one's own ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Does a folder hold token shards? */
static bool holds_shards(const char *folder)
{
    bool some = false;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && !some && (e = readdir(dir));)
        some = *e->d_name != '.' && ends_with(e->d_name, ".bin");
    if (dir)
        closedir(dir);
    return some;
}

/* The pattern of all shards in a folder, whose own name is meant as it is. */
static void shards_of(char *to, size_t size, const char *folder)
{
    size_t n = 0;
    for (; *folder && n + 16 < size; folder++)
        n += (size_t)snprintf(to + n, size - n, strchr("*?[", *folder) ? "[%c]" : *folder == '\\' ? "\\%c" : "%c", *folder);
    snprintf(to + n, size - n, "/*.bin");
}

/* Settings that make all of DATA what is evaluated. */
enum { DATA_SETS = 5 };
struct data_sets { char pattern[3 * CONFIG_PATH_MAX], path[3 * CONFIG_PATH_MAX + 32]; const char *list[DATA_SETS + MAX_LIST]; int n; };

/* Keys that would have another file, or less of it, looked at than DATA while DATA is what is told. */
static enum status refuse_own_data(const struct text_list *sets, struct error *err)
{
    static const char *const keys[] = {"data.path", "data.val_path", "data.val_fraction", "data.source", "data.domains"};
    for (int i = 0; i < sets->n; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (!strncmp(sets->item[i], keys[k], strlen(keys[k])) && sets->item[i][strlen(keys[k])] == '=')
                return error_set(err, BAD_INPUT, "--set %s is for the run's own data; DATA is looked at whole: leave out one of the two", keys[k]);
    return OK;
}

static enum status set_data(struct data_sets *s, const char *data, const struct text_list *sets, struct error *err)
{
    const bool folder = !ends_with(data, ".bin") && holds_shards(data), bin = folder || ends_with(data, ".bin");
    if (refuse_own_data(sets, err) != OK)
        return err->status;
    if (strlen(data) >= CONFIG_PATH_MAX - 8)
        return error_set(err, BAD_INPUT, "the path of DATA is longer than %d bytes", CONFIG_PATH_MAX - 8);
    if (!strpbrk(data, "*?[") && access(data, F_OK) && errno == ENOENT)         /* else the key of a config would be blamed */
        return error_set(err, BAD_INPUT, "cannot open '%s': %s", data, strerror(errno));
    if (folder)
        shards_of(s->pattern, sizeof s->pattern, data);
    snprintf(s->path, sizeof s->path, "data.path=\"%s\"", folder ? s->pattern : data);       /* quoted: as it is, also "null" and blanks */
    s->list[s->n++] = bin ? "data.source=bin" : "data.source=text";
    s->list[s->n++] = s->path;
    s->list[s->n++] = "data.val_path=";
    s->list[s->n++] = "data.val_fraction=0";
    s->list[s->n++] = "data.max_chars=0";           /* what the run had was of its own data; --set comes after it */
    for (int i = 0; i < sets->n; i++)
        s->list[s->n++] = sets->item[i];
    return OK;
}

static int eval(const char *checkpoint, const struct eval_options *o, enum part part, bool json)
{
    struct eval_result *r = malloc(sizeof *r);
    struct error err;
    enum status st = r ? eval_run(checkpoint, o, r, &err) : error_no_memory(&err, "the result", sizeof *r);
    progress_clear(o->context);
    if (st == OK && r->interrupted && !(r->all.tokens > 0))
        st = error_stopped(&err, "stopped before the first batch");
    if (st == OK && json)
        st = print_json(r, part, &err);
    else if (st == OK)
        print_text(r, part);
    free(r);
    return st == OK ? OK : report_error(&err);
}

int cmd_eval(int argc, char **argv)
{
    struct text_list sets = {0}, positional = {0};
    struct progress bar = {0};
    struct eval_options o = {.stop = &stop_requested, .progress = on_progress, .context = &bar};
    struct data_sets data = {.n = 0};
    struct picked split = {.words = splits}, device = {.words = device_words};
    int64_t batches = INT64_MIN;        /* not given */
    bool json = false;
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "other data (keys of data), or how to run (eval.batch_size, threads); may be repeated"},
        {"--split", NULL, OPTION_WORD, &split, "which part of the data (default validation)"},
        {"--batches", "N", OPTION_INT, &batches, "only the first N batches of the data, or of each domain (default all); the same as --set eval.batches=N"},
        {"--device", NULL, OPTION_WORD, &device, "where to run (default: where it was trained)"},
        {"--json", NULL, OPTION_FLAG, &json, "print the result as one JSON document"},
        {0},
    };
    const struct usage usage = {
        "eval", "CHECKPOINT [DATA]", "Tells loss and perplexity of a model on its data, or on all of other data that its tokenizer can read.\n"
        "CHECKPOINT is the folder of a run or of one of its checkpoints; DATA a text file, a folder or glob of them, .gz too,\n"
        "or token shards (.bin). All of the data is looked at; a run looks at eval.batches batches on its way, so that its last loss\n"
        "is a little different.", options,
        "  hone eval runs/quickstart\n  hone eval runs/quickstart --split train --batches 50 --json\n"
        "  hone eval runs/mine new.txt --json\n  hone eval runs/mine 'shards/*.bin'\n"
        "  hone eval runs/quickstart --set data.chars=4000000\n  hone eval runs/forget --set data.domains=[prose,code,notes.txt]\n", 1, 2};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    const bool given = positional.n > 1;
    if (given && split.text)
        error_set(&err, BAD_INPUT, "--split is for the run's own data; DATA is looked at whole");
    if (given && (split.text || set_data(&data, positional.item[1], &sets, &err) != OK))
        return report_error(&err);
    if (batches != INT64_MIN && batches < 1) {
        error_set(&err, BAD_INPUT, "--batches must be at least 1, not %lld", (long long)batches);
        return report_error(&err);
    }
    o.sets = given ? data.list : sets.item;
    o.n_sets = given ? data.n : sets.n;
    o.train = given || (split.text && split.at == SPLIT_OF_TRAINING);       /* all of DATA is in that part */
    o.device = device.text;
    o.batches = batches == INT64_MIN ? 0 : batches;
    install_stop_handler();
    return eval(positional.item[0], &o, given ? PART_ALL : o.train ? PART_TRAIN : PART_VALIDATION, json);
}
