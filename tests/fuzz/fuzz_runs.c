/* Any bytes as the metrics.jsonl, the run.json and the config.yaml of a run: it is listed, with what could be read, and its curves are
 * bounded and go forward. */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "runs/runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/hone-fuzz-runs-XXXXXX";
static const char *const names[] = {"metrics.jsonl", "run.json", "config.yaml"};

static void require(int condition)
{
    if (!condition)
        abort();
}

static void path_of(char path[128], const char *name) { snprintf(path, 128, "%s/%s", folder, name); }

static void remove_folder(void)
{
    char path[128];
    for (int i = 0; i < 3; i++) {
        path_of(path, names[i]);
        unlink(path);
    }
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

static void check_curve(const struct curve *c)
{
    int64_t lines = 0;
    require(c->n <= c->room);
    for (int i = 0; i < c->n; i++) {
        const struct curve_point *p = &c->point[i];
        lines += p->lines;
        require(p->lines >= 1 && p->lines <= c->each && p->finite <= p->lines && (i == 0 || p->step > p[-1].step));
        require(p->finite ? p->low <= p->high && isfinite(p->loss) : isnan(p->loss));
        require(i == 0 || p->seconds >= p[-1].seconds);
    }
    require(lines == c->lines);
}

static void check_run(void)
{
    const char *const list[] = {folder};
    struct error err;
    struct runs r;
    struct run_keys k;
    FILE *to = fopen("/dev/null", "w");
    require(to && runs_open(&r, list, 1, &err) == OK && r.n == 1 && run_read_curves(&r.run[0], 8, &err) == OK);
    require(memchr(r.run[0].warning, '\0', RUN_WORDS) && r.run[0].step >= 0 && r.run[0].steps >= 0);
    check_curve(&r.run[0].curves->loss);
    check_curve(&r.run[0].curves->validation);
    run_keys_init(&k, &r);
    json_t *j = runs_json(&r, &k, folder), *compared = runs_compare_json(&r, &k);
    require(j && compared);
    report_runs_print_terminal(j, to, true);
    report_compare_print_terminal(compared, to, true);
    require(report_compare_write_markdown(compared, to, &err) == OK);
    json_decref(compared);
    json_decref(j);
    run_keys_release(&k);
    runs_release(&r);
    fclose(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int made;                    /* its name may end like the template */
    if (!made) {
        require(mkdtemp(folder) != NULL);
        atexit(remove_folder);
        made = 1;
    }
    for (int i = 0; i < 3; i++)
        put(names[i], data, size);
    check_run();
    return 0;
}
