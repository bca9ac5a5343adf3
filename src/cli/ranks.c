/* Ranks of one command: who they are, and which of them speaks. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "config/config.h"
#include "dist/dist.h"
#include "ops/cuda/cuda.h"
#include "train/ranks.h"

/* `hone launch` hears from every rank what it ended with: mpirun tells only of the first that failed, if that. And which process it is. */
static void leave(int rank, const char *what, long number)
{
    const char *folder = getenv(LAUNCH_FOLDER);
    char path[CONFIG_PATH_MAX];
    if (!folder || !*folder)
        return;
    snprintf(path, sizeof path, "%s/rank-%d%s", folder, rank, what);
    FILE *f = fopen(path, "we");
    if (f) {
        fprintf(f, "%ld\n", number);
        fclose(f);
    }
}

void ranks_ended(int code) { leave(dist_start_read().rank, "", code); }

int ranks_report(struct dist *d, const struct error *err)
{
    if (!dist_tells(d))
        return exit_code(err);
    if (dist_rank(d) == 0 || !dist_gave_up(d))
        return report_error(err);
    struct error named;
    error_set(&named, err->status, "%s: %.900s", dist_name(d, dist_rank(d)), err->text);
    named.stopped = err->stopped;
    return report_error(&named);
}

void ranks_close(struct dist *d, int code)
{
    leave(dist_rank(d), "", code);
    dist_close(d);
}

/* Before there is a group, or without one: the first of those that were started speaks for all. */
int ranks_refuse(const struct error *err)
{
    const int rank = dist_start_read().rank;
    leave(rank, "", exit_code(err));
    return rank == 0 ? report_error(err) : exit_code(err);
}

enum status ranks_check_alone(const char *command, struct error *err)
{
    const struct dist_start s = dist_start_read();
    return s.ranks > 1 ? error_set(err, BAD_INPUT, "%s runs on one rank, and %s started %d", command, s.by, s.ranks) : OK;
}

/* A rank that is killed while it starts would leave the others waiting. */
static void begin(void)
{
    cuda_pin_nccl();
    if (dist_start_read().ranks > 1)
        install_stop_handler();
    leave(dist_start_read().rank, ".process", getpid());
}

int ranks_join(struct dist **out)
{
    struct error err;
    begin();
    return dist_open(out, false, &err) == OK ? OK : ranks_refuse(&err);
}

int ranks_open(struct dist **out, struct config *c, const char *path, const struct text_list *sets)
{
    struct dist *d = NULL;
    struct error err, no_group = {.status = OK};
    begin();
    const enum status found = dist_open(&d, false, &no_group);
    enum status st = dist_agree(d, config_load(c, path, sets->item, sets->n, &err), &err);
    if (st == OK && c->dist.transport == TRANSPORT_NONE) {
        dist_close(d);
        d = NULL;
    } else if (st == OK && found != OK) {
        err = no_group;
        st = found;
    } else if (st == OK && !d && c->dist.transport == TRANSPORT_MPI) {
        st = dist_open(&d, true, &err);
    }
    c->dist.comm = dist_comm(d);
    if (st == OK)
        st = ranks_place(c, &err);
    if (st != OK) {
        const int code = d ? ranks_report(d, &err) : ranks_refuse(&err);
        if (d)
            ranks_close(d, code);
        return code;
    }
    *out = d;
    return OK;
}
