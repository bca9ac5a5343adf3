/* Any bytes as the forgetting.json and as the nodes.jsonl of a run: refused or left out with words, and what is read makes a report. */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prove/forget.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/hone-fuzz-forget-XXXXXX";

static void require(int condition)
{
    if (!condition)
        abort();
}

static void path_of(char path[128], const char *name) { snprintf(path, 128, "%s/%s", folder, name); }

static void remove_folder(void)
{
    char path[128];
    path_of(path, "forgetting.json");
    unlink(path);
    path_of(path, "nodes.jsonl");
    unlink(path);
    rmdir(folder);
}

static void put(const char *name, const void *data, size_t size)
{
    char path[128];
    path_of(path, name);
    unlink(path);                       /* a file that is cut to nothing and filled again goes to the disk at once */
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

static void check_logs(const struct forget_run *r)
{
    for (int i = 0; i < r->n_logs; i++) {
        const struct forget_log *l = &r->logs[i];
        require(l->steps >= 1 && l->domain >= -1 && l->domain < r->n_domains && (i == 0 || l->step > l[-1].step));
        for (int n = 0; n < r->nodes; n++)
            require(l->selected[n] >= 0 && l->selected[n] <= (double)l->steps && !(l->norm_mean[n] < 0));
    }
}

static void check_report(const struct forget *f)
{
    struct error err;
    FILE *to = fopen("/dev/null", "w");
    json_t *j = forget_json(f);
    require(to && j);
    require(report_forget_write_markdown(j, to, &err) == OK);
    report_forget_print_terminal(j, to, true);
    json_decref(j);
    fclose(to);
}

/* Both seeds of both configs read the same folder. */
static void check_folder(void)
{
    struct forget *f = calloc(1, sizeof *f);
    struct error err;
    require(f != NULL);
    f->seeds = 2;
    for (f->n_configs = 0; f->n_configs < 2; f->n_configs++) {
        struct forget_config *c = &f->configs[f->n_configs];
        *c = (struct forget_config){.name = "c", .choice = f->n_configs ? CHOICE_RANDOM : CHOICE_GRADIENT, .k = 1, .nodes = 3, .levels = 1, .tree = {2}};
        c->n_runs = 2;
        c->runs = arena_alloc(&f->arena, 2 * sizeof *c->runs);
        for (int i = 0; i < 2; i++) {
            c->runs[i].seed = i + 1;
            snprintf(c->runs[i].folder, sizeof c->runs[i].folder, "%s", folder);
        }
    }
    require(forget_collect(f, &err) == OK);
    for (int i = 0; i < f->n_warnings; i++)
        require(*f->warnings[i] && memchr(f->warnings[i], '\0', sizeof f->warnings[i]));
    check_logs(&f->configs[0].runs[0]);
    check_report(f);
    forget_release(f);
    free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char losses[] = "{\"domains\": [\"a\", \"b\"], \"entropy\": [1, null], \"steps_per_domain\": 4, \"loss\": [[4, 4], [1, 3], [2, 1]]}";
    static int made;                    /* its name may end like the template */
    if (!made) {
        require(mkdtemp(folder) != NULL);
        atexit(remove_folder);
        made = 1;
    }
    put("forgetting.json", data, size);
    put("nodes.jsonl", data, size);
    check_folder();
    put("forgetting.json", losses, sizeof losses - 1);
    check_folder();
    return 0;
}
