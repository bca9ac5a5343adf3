/* What the files of `hone doctor` share. */
#ifndef HONE_CLI_DOCTOR_H
#define HONE_CLI_DOCTOR_H

#include <jansson.h>

#include "cli/cli.h"
#include "core/links.h"
#include "core/gpu.h"
#include "ops/cuda/cuda.h"

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
struct doctor_fit { int64_t batch[4]; };
enum status doctor_fit(struct doctor_fit *f, const struct config *c, struct error *err);
void doctor_fit_words(const struct doctor_fit *f, const struct config *c, char out[256]);
json_t *doctor_fit_json(const struct doctor_fit *f);

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
