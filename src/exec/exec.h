/* Runs a program on a backend: memory is planned and allocated once, kernels are chosen once, a step only runs them. */
#ifndef HONE_EXEC_EXEC_H
#define HONE_EXEC_EXEC_H

#include <stdbool.h>

#include "backend/backend.h"
#include "core/error.h"
#include "program/program.h"

struct exec;

struct exec_memory {
    size_t parameters, state, inputs, workspace, scratch;     /* inputs: tables (copies of weights, too) and what the host reads */
    size_t sums;                /* of `state`, what sums gradients over micro-batches: no state of the optimizer */
    size_t gradients;           /* of the parameters, where they live in the workspace at the end of backward */
    size_t naive_workspace;     /* without the plan */
    size_t beside;              /* backend->beside, where it was planned */
};

double exec_memory_bytes(const struct exec_memory *m);          /* what a step must have: all but the last four */
/* What a program would take on a backend; nothing is allocated. */
enum status exec_plan(struct exec_memory *out, const struct program *p, struct backend *b, struct error *err);

/* Takes the program over (frees it with itself) on success, and runs its setup. Values of `shared` (may be NULL) that persist and have the
 * same name, type and shape are used instead of new memory: an evaluation program sees the parameters of the training one. Its
 * workspace and scratch are used too where they are large enough, so run either only between whole steps of the other, and free this one
 * first. */
enum status exec_new(struct exec **out, struct program *p, struct backend *b, struct exec *shared, struct error *err);
void exec_free(struct exec *e);

const struct program *exec_program(const struct exec *e);
struct exec_memory exec_memory(const struct exec *e);

/* Runs the ops of the phases in order. A step starts at PHASE_DATA. The setup, which ran when this was made, runs again before it where a
 * parameter was written since. */
void exec_run(struct exec *e, enum phase first, enum phase last);
/* Runs data, forward and backward of a micro-batch that is not the last of its step: without the ops that are for that one alone. */
void exec_run_early(struct exec *e);
/* Runs the setup where a parameter was written since, for others that values are shared with. */
void exec_refresh(struct exec *e);
/* A step may end while weights come from other ranks. Whoever reads or writes them here waits for that, and who frees this; NULL is fine. */
void exec_settle(struct exec *e);
/* Waits until the device has done all that was run; who takes times asks for it. */
void exec_finish(struct exec *e);
/* A device can fail, and may tell so only later. After the first failure nothing is run or copied any more, what is read is no number,
 * and this says what happened; who runs steps asks after each, and who reads something to keep it asks before it is kept. */
enum status exec_status(const struct exec *e, struct error *err);

/* When on, every run records when each lane worked on each op and adds to the ops' profile counters. */
void exec_measure(struct exec *e, bool on);
/* From when to when the last measured run ran, where the backend tells what measuring took before and behind it. */
bool exec_ran(const struct exec *e, int64_t *from_ns, int64_t *to_ns);
/* What the device's queues did in the run that was measured last (backend.h); *n is 0 where that is not told. */
const struct device_event *exec_device_events(const struct exec *e, int *n);
bool exec_on_device(const struct exec *e);      /* on another device than the CPU */
/* Of the last measured run: (lanes) times of the op with this index in the program. NULL when nothing was measured. */
const struct lane_time *exec_times(const struct exec *e, int op);
const char *exec_kernel_name(const struct exec *e, int op);     /* "blocks", or "blocks/thirds" where a variant was chosen */
/* What a step saves by the variants that were chosen, as they were timed: what the pass autotune predicts. */
double exec_choice_gain_us(const struct exec *e);
/* Kernels that a step starts; below 0: not known, or no such thing. */
double exec_kernels_per_step(struct exec *e);
double exec_occupancy(const struct exec *e, int op);            /* as struct prepared_op has it */
int exec_lanes(const struct exec *e);          /* that work on an op at once: threads of a CPU */

void exec_write(struct exec *e, value_id v, const void *host);
void exec_read(struct exec *e, value_id v, void *host);
float exec_scalar(struct exec *e, value_id v);

/* Gives every parameter its initial value from the seed and zeroes the states. */
enum status exec_init_parameters(struct exec *e, uint64_t seed, struct error *err);

#endif
