/* What the files of `hone doctor` share. */
#ifndef HONE_CLI_DOCTOR_H
#define HONE_CLI_DOCTOR_H

#include <jansson.h>

#include "cli/cli.h"
#include "core/disk.h"
#include "core/links.h"
#include "core/gpu.h"
#include "ops/cuda/cuda.h"
#include "train/train.h"

struct doctor_gpu {
    struct cuda_device device;
    struct error none;                      /* why there is none; status OK: there is one */
    bool has_peaks, has_state;
    struct peaks peaks;
    struct gpu_state state;
    struct error no_state;                  /* why it is not known */
};

void doctor_read_gpu(struct doctor_gpu *g, bool anew);      /* anew: peaks that it has shown are forgotten first */
void doctor_print_gpu(const struct doctor_gpu *g);
json_t *doctor_gpu_json(const struct doctor_gpu *g);        /* null: there is none */

/* The largest batches of a config on GPUs of usual sizes. */
enum { GPU_SIZES = 4 };
struct doctor_fit { struct memory_fit size[GPU_SIZES]; };
enum status doctor_fit(struct doctor_fit *f, const struct config *c, struct error *err);
json_t *doctor_fit_json(const struct doctor_fit *f);

/* ---- doctor_disk.c ---- */

struct doctor_disk {                    /* of the current folder */
    bool here_known;
    struct disk_speed here;
    struct error not_here;              /* why it is not known */
};
void doctor_read_disk(struct doctor_disk *d);
void doctor_print_disk(const struct doctor_disk *d, double free_bytes);
json_t *doctor_disk_json(const struct doctor_disk *d, double free_bytes);

struct doctor_data {                    /* of a config whose data are files */
    bool known;                         /* false: they are none, or could not be read */
    bool bin;                           /* shards, which are read while it trains; text is read before */
    struct disk_speed speed;
    double bytes;                       /* of all files */
    int64_t tokens;
    char file[CONFIG_PATH_MAX];         /* that was read, the largest */
};
enum { DATA_WORDS = 400 };
void doctor_read_data(struct doctor_data *d, const struct config *c, int64_t tokens);
/* Bytes/s that steps of such a length read; 0: all of it stays in memory. */
double doctor_data_need(const struct doctor_data *d, const struct config *c, double step_ms, double free_bytes);
bool doctor_data_words(const struct doctor_data *d, double need, char out[DATA_WORDS]);             /* true: it is too slow for that */
json_t *doctor_data_json(const struct doctor_data *d);                                              /* null: not known */

/* ---- doctor_time.c ---- */

struct doctor_time {
    bool known, long_steps;             /* long_steps: they were not timed, as that would take too long */
    struct error none;                  /* why it is not known otherwise */
    struct train_estimate run;
};
enum { TIME_WORDS = 500 };
/* least_ms: what a step needs at the peak of the config's threads. */
void doctor_read_time(struct doctor_time *t, const struct config *c, double least_ms);
const char *doctor_time_words(const struct doctor_time *t, char out[TIME_WORDS]);
json_t *doctor_time_json(const struct doctor_time *t);                                  /* null: not known */

/* ---- doctor_pace.c ---- */

/* Of the best that the cores have shown, just now: small products, and their clock; bf16 0: there are no such instructions. delayed_share: of the time
 * meanwhile, what other work had of the cores; below 0: not known. */
struct doctor_pace { double f32, bf16, clock, delayed_share; };
void doctor_read_pace(struct doctor_pace *p, struct backend *b, const struct peaks *peaks);
void doctor_print_pace(const struct doctor_pace *p);
json_t *doctor_pace_json(const struct doctor_pace *p);

/* ---- doctor_ranks.c: where several ranks were started ---- */

struct doctor_ranks {
    bool there, leads;                  /* several were started; and this is the one that goes on */
    struct links links;
};
/* Measures how fast they talk, and remembers it; afterwards they are no group any more. Otherwise the code that this one ends with. */
int doctor_read_ranks(struct doctor_ranks *r);
void doctor_print_ranks(const struct doctor_ranks *r);
json_t *doctor_ranks_json(const struct doctor_ranks *r);        /* null where there are none */

#endif
