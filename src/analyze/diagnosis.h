/* The diagnosis of an imported trace: numbers as recorded, the same with the profiler's own cost taken out, findings. */
#ifndef HONE_ANALYZE_DIAGNOSIS_H
#define HONE_ANALYZE_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/analyze.h"
#include "core/arena.h"
#include "core/error.h"
#include "trace/trace.h"

/* A step as recorded. The parts are exclusive and sum to total_us: each moment goes to the first of them that is
 * active (kernel before copy, before fill, ..., before other). */
struct trace_step {
    int64_t number;                         /* N of ProfilerStep#N; 0 when the whole trace is one step */
    double start_us, total_us;              /* start: since the trace's first event */
    double kernel_us, memcpy_us, memset_us, comm_us, runtime_us, dataloader_us, cpu_us, other_us;
    double busy_us;                         /* the device worked in it: kernel, copy, fill, and communication on the device */
    int64_t kernels, launches, host_ops;
};

/* The device from its first event to its last, counting events whose launch is in the trace. */
struct trace_gpu {
    double busy_us, idle_us, total_us;      /* busy: any kernel, copy or fill on any stream */
    double computation_us;                  /* kernels that do not communicate, and fills */
    double comm_us, exposed_comm_us;        /* collectives; not hidden behind computation */
    double memcpy_us, exposed_memcpy_us;    /* not hidden behind computation or communication */
    double idle_host_us;                    /* nothing was launched yet: the device waits for the host */
    double idle_kernel_us;                  /* the next kernel was launched in time and started late by no more than a few us */
    double idle_other_us;                   /* launched, and waiting for another stream or an event */
    int streams, devices;                   /* with work */
    double busiest_us;                      /* of the device that is busy longest, alone; busy_us is of all together */
};

struct trace_kernel {                       /* kernels of one name, launching op and stream */
    const char *name, *op, *kind;           /* kind: gemm, attention, softmax, norm, elementwise, reduce, copy, optimizer, comm, ... */
    int64_t stream, count;
    double total_us, mean_us, min_us, max_us;
    double share;                           /* of all kernel time */
    double occupancy;                       /* mean weighted by time, percent; -1: unknown */
    const char *shown;                      /* the name, shortened to what tells it from the others */
};

struct trace_op {                           /* host ops of one name */
    const char *name;
    int64_t count, launches;                /* launches: by the op itself, not by ops inside */
    double self_us, total_us;               /* on the host; self: without the ops inside */
    double device_self_us, device_us;       /* of what it launched itself; with the ops inside */
    double share;                           /* its self time, of all that the device did in steps; where no op launched any, of all ops' self time on the host */
};

/* ---- an op against what the device can do ---- */

struct trace_roof {                         /* an op on tensors of equal shapes and types, per judged step */
    const char *op, *shapes, *types;
    double count, device_us;                /* of what it launched itself */
    double flops, bytes;                    /* of all its calls; flops 0: no product; bytes 0: not known */
    double tflops, gbps;                    /* reached */
    double percent;                         /* of the peak that is nearer; -1: unknown */
    bool by_memory;                         /* that peak is the memory's */
};

struct trace_peaks {
    double tflops, gbps;                    /* of a device, 0: unknown. Of the numbers that most of the step's products take */
    int devices;                            /* that the step has work on */
    const char *numbers;                    /* "bf16"; NULL: unknown */
    bool given;                             /* --peak-tflops or --peak-gbps */
};

struct trace_module {                       /* a module of the model, or a range that the user named; per judged step */
    const char *name;
    double count, host_us;                  /* the host in it, as recorded, with what is inside */
    double forward_us, backward_us;         /* of the device: what was launched in it, and the backward of its ops */
    double share;                           /* of the device's time */
};

struct trace_frame {                        /* a Python function, per judged step, as recorded */
    const char *name;
    double count, self_us, total_us;        /* self: without functions, ops and calls inside */
};

struct trace_launches {                     /* calls that start work on the device */
    int64_t count;                          /* with a device event */
    double per_step, call_us;               /* median length of the call */
    double delay_us, delay_p90_us;          /* from the end of the call to the start of the work */
    double kernel_us;                       /* median length of the work */
    int64_t shorter_than_call;              /* device events that took less than their launch call */
    double queue_mean;                      /* launched and not finished, averaged over time */
    int64_t queue_max;
    int64_t syncs;                          /* calls in which the host waits for the device */
    double sync_us;                         /* time in them */
    int64_t graphs;                         /* launches of whole graphs */
};

struct trace_point { double us, value; };   /* us: since the trace's first event */

struct trace_phase {                        /* of a judged step, in the names and the order of a profile: data, forward, backward, ... */
    const char *name;
    double us, recorded_us;                 /* without the profiler; as recorded. They sum to those of the corrected view */
    double busy_us;                         /* of both, the device's work; sums to device_us there */
};

struct trace_rank {
    int rank;                               /* -1: unknown */
    const char *path;
    int64_t steps;
    double step_us, kernel_us, comm_us, exposed_comm_us, idle_us, host_us;      /* per step */
    double wait_us;                         /* in collectives, beyond the fastest rank's time in them */
    const char *name;                       /* tells it from the others: "rank 3", or its file where the number is not known */
    bool straggler;                         /* the finding is about it */
};

struct trace_collective {                   /* collectives of one kind and size, over all ranks */
    const char *name;                       /* "all_reduce" */
    double bytes;                           /* that a rank puts in; -1: unknown */
    int ranks;                              /* that take part; 0: unknown */
    double per_step;
    double total_us, exposed_us;            /* per step, mean of the ranks; exposed: nothing else runs beside it */
    double mean_us;                         /* of a call, with the wait for others */
    double best_us;                         /* of the rank that is shortest in it: it came last, and did not wait. Of one rank: the shortest call */
    double gb_per_s;                        /* bytes over that; 0: unknown */
    double spread_us;                       /* from the first rank's arrival to the last's; -1: one rank, or none matches */
    int last_rank;                          /* the rank that comes last most often; -1: its number is unknown */
    double last_share;                      /* of the calls */
    const char *last_name;                  /* of that rank, as above; NULL: one rank, or none matches */
};

/* One step with the profiler's own cost taken out, and what it is bound by. */
struct corrected_view {
    double step_us;                         /* estimated time of a step without the profiler, or the one that was given */
    double low_us, high_us;                 /* its interval; equal when the time was given */
    bool given;                             /* --step-ms */
    double recorded_us;                     /* as recorded, of the same steps: those that are judged */
    double host_us;                         /* host work per step, waits left out */
    double device_us;                       /* the device's busy time per step; of several, the time in which some device works */
    double cost_per_event_us;               /* of the profiler on the host */
    double events_per_step;                 /* recorded on the host */
    double idle_us, recorded_idle_us;       /* device idle per step, after and before the correction */
};

/* ---- against the report of an earlier trace; report/baseline.c ---- */

struct baseline_row { const char *what, *name; double before_us, after_us; };      /* per step; it takes longer now */

struct baseline {
    const char *path;
    double before_us, after_us, change;     /* of a step without the profiler; change: relative, above 0 is slower */
    bool as_recorded;                       /* they are as recorded: of one of the two the time without the profiler was given, of the other not */
    double host_factor;                     /* equal ops took so many times as long on this host; taken out of after_us, as by --diff. 1: as long */
    double full_change;                     /* the change with that left in */
    double limit;                           /* of the change */
    bool slower;                            /* by more than the limit */
    bool forgiven;                          /* it would be, were the host's speed not taken out */
    struct baseline_row *rows;              /* (n_rows) what takes longer, the most first */
    int n_rows;
    const char *new_rules;                  /* findings of medium or more that were not there: "a, b"; NULL: none */
};

/* ---- a program that hone watched; src/watch ---- */

struct watched_window {                     /* steps of the program, one after the other */
    int64_t first, steps;                   /* first: how many steps the program had taken before it */
    double step_us;                         /* mean; of undisturbed steps the device is waited for at both ends */
    double usual_us;                        /* the same without single steps far from the others; 0: unknown */
    double median_us, fastest_us, slowest_us;       /* of single steps by the host's clock; 0: unknown */
};

struct watched_rank {
    int rank, world_size;
    int ranks_here;                         /* of the job, on this machine */
    const char *torch, *python, *device;    /* device: cpu, cuda, mps, ... */
    const char *steps_by;                   /* what a step was told by: "Optimizer.step", or the function that was named */
    int64_t steps;                          /* seen in all */
    int64_t backwards;                      /* in a step; above 1: gradients are accumulated, or there are several losses */
    int64_t calls;                          /* of optimizers in a step; 0: unknown */
    double peak_bytes;                      /* of the device's memory, before the end; 0: unknown */
    bool finished, stopped;                 /* everything was measured; the program was ended then, as asked */
    bool ended;                             /* it came to its end, and was not killed: `steps` are all */
    struct watched_window undisturbed, shapes, stacks;      /* steps 0: the program did not come so far */
    const char *failure;                    /* what went wrong in the hook, which did nothing more then; "": nothing */
    const char **notes;                     /* (n_notes) */
    int n_notes;
};

struct watched {
    const char *command;                    /* "python train.py" */
    struct watched_rank *ranks;             /* (n) by rank */
    int n;
    struct json_t *trial;                   /* what was tried in the program, of the first rank; NULL: nothing */
};

struct diagnosis {
    struct baseline *baseline;              /* NULL: there is none */
    const struct watched *watched;          /* NULL: a trace that somebody brought. Owned by the caller */
    const char *device, *name;              /* "NVIDIA H200"; name of the file or folder */
    struct trace_step *steps;               /* (n_steps - steps_left_out) by start; first, last, fastest and slowest are there */
    int n_steps;                            /* of the trace */
    int steps_left_out;                     /* of the list; all other numbers are of all steps */
    struct trace_odd { int64_t number; double total_us, usual_us; } *odd;       /* (n_odd) none of the steps: each takes many times as long as the median of those */
    int n_odd;
    bool no_step_marks;                     /* no ProfilerStep */
    const char *steps_by;                   /* then: what steps were told by, such as "Optimizer.step"; NULL: it is taken as one, from
                                               the device's first event to its last where there is a device */
    struct trace_step mean;                 /* of the steps */
    int cold_steps;                         /* steps at the start that set the process up; left out of what is judged */
    int judged_steps;                       /* of the others, around the middle: a long trace has more than are judged; 0: not known */
    bool device_lost;                       /* work was launched, but none of it was recorded */
    bool all_cold;                          /* there are no others: what a process does once is taken out, and nothing is sure */
    bool only_cut;                          /* the file was cut off within its only step: nothing is sure */
    struct trace_gpu gpu;
    struct trace_kernel *kernels;           /* by total time, largest first */
    int n_kernels;
    struct trace_op *ops;                   /* by device self time, then host self time */
    int n_ops;
    double no_op_share;                     /* of what the device did in steps: launched by no op (graphs, compiled code, calls outside of ops) */
    struct trace_roof *roofs;               /* (n_roofs) by device time; empty where shapes were not recorded */
    int n_roofs;
    struct trace_peaks peaks;
    double mfu_percent;                     /* of the peak, in the step without the profiler, by the products whose shapes are known; -1: unknown */
    bool mfu_at_least;                      /* products, convolutions and attentions of unknown arithmetic take a tenth of the device's time or more */
    double uncounted_share;                 /* of the device's time, in those */
    double products_flops;                  /* per step, without what is computed again */
    struct trace_module *modules;           /* (n_modules) by device time; empty where there are neither modules nor ranges */
    int n_modules;
    bool modules_are_ranges;
    struct trace_frame *frames;             /* (n_frames) by self time; empty where stacks were not recorded */
    int n_frames;
    bool lines_known;                       /* frames, modules and lines of findings are of another recording, which had stacks */
    struct profile_part *kinds;             /* kernel time by kind, largest first, per step */
    int n_kinds;
    struct trace_launches launches;
    struct trace_point *queue;              /* (n_queue) launched and not finished, thinned for drawing */
    int n_queue;
    struct trace_point *memory;             /* (n_memory) bytes allocated on the device, thinned; 0 points: not recorded */
    int n_memory;
    double memory_peak_bytes, memory_total_bytes;       /* 0: unknown */
    struct trace_rank *ranks;               /* by rank; one entry for a single trace */
    int n_ranks;
    struct trace_collective *collectives;   /* by total time */
    int n_collectives;
    double in_turns;                        /* several devices fill the step, but none alone: the busiest works this share of it; 0: not so */
    int timeline_step;                      /* index of the step whose time is the median, among those of the trace */
    int timeline_shown;                     /* and in `steps`, where steps are left out */
    double mean_occupancy;                  /* of kernels weighted by time, percent; -1: unknown */

    struct corrected_view corrected;
    struct trace_phase *iteration;          /* (n_iteration) of `corrected` */
    int n_iteration;                        /* 0: the trace does not say which work is of which phase */
    const char *iteration_note;             /* then: why; else NULL */
    struct finding *findings;               /* ranked by expected gain */
    int n_findings;
    struct plan_phase *phases;              /* (n_phases) empty ones left out; the last one's speedup is that of everything */
    int n_phases;

    const char *headline, *bound_by, *largest, *first_action, *realistic_gain;
    char **warnings;                        /* (n_warnings) of the reader and of the analysis */
    int n_warnings;
    struct diagnosis **others;              /* (n_others) other ranks, judged alone; texts of findings lie there */
    int n_others;
    struct trace *trace;                    /* of the first rank, for the timeline; owned by the caller */
    struct arena arena;                     /* owns the strings and arrays above */
};

/* At most so many steps are listed; of more, these slowest, and others evenly spread. */
enum { SHOWN_STEPS = 1000, SHOWN_SLOWEST = 20 };
static inline int diagnosis_shown_steps(const struct diagnosis *d) { return d->n_steps - d->steps_left_out; }
static inline int64_t diagnosis_timeline_number(const struct diagnosis *d)
{
    return d->steps[d->steps_left_out ? d->timeline_shown : d->timeline_step].number;
}

struct diagnose_options {
    double step_us;                         /* of a step without the profiler; 0: unknown */
    const int *ranks;                       /* (n) of each trace that does not say its rank itself; NULL: not known */
    const double *rank_step_us;             /* (n) of each trace, measured in the program that was recorded; NULL: step_us of all */
    double peak_tflops, peak_gbps;          /* of the device; 0: as known by its name */
    struct cpu_reach { double f32_tflops, bf16_tflops, gbps; } cpu;     /* of the CPU that the trace was made on, measured; 0: not known */
    bool on_cpu;                            /* the program is known to compute on the CPU */
};

/* Whether a trace holds anything to judge: marks of steps alone do not. */
enum status diagnose_check(const struct trace *t, struct error *err);

/* Diagnoses traces of the ranks of one job (usually one). Those that cannot be of one job with most others are left out, with a warning. Their events are put in order in place; they stay with the
 * caller and must outlive the diagnosis. */
enum status diagnose(struct diagnosis *out, struct trace **traces, int n, const struct diagnose_options *options,
                     struct error *err);
void diagnosis_release(struct diagnosis *d);

/* Of another recording of the same program, with stacks: findings learn their lines from it, and the tables of Python and of modules are its.
 * Nothing of it is kept. */
void diagnosis_take_places(struct diagnosis *d, const struct diagnosis *stacks);

/* What the fix of a finding won when it was tried in the program. */
struct measured_fix {
    const char *rule, *name;                /* of the finding; of what was tried */
    double speedup, low, high;
    bool won;                               /* false: nothing that can be told from chance */
};
/* Measurements take the place of predictions, in the findings and their order, the roadmap and the answers; one for a rule. Last. */
void diagnosis_take_measured(struct diagnosis *d, const struct measured_fix *fixes, int n);

/* ---- two traces side by side ---- */

struct diff_row {                           /* per step */
    const char *name;
    double a_us, b_us;
    double a_count, b_count;
};

/* A number of each step; NAN: not known. */
struct diff_number {
    const char *name;
    enum diff_unit { DIFF_SHARE, DIFF_COUNT, DIFF_BYTES } unit;
    double a, b;
};
enum { DIFF_NUMBERS = 6 };

struct trace_diff {
    const char *a, *b;
    double a_step_us, b_step_us;            /* without the profiler, which may have cost the two differently */
    double a_recorded_us, b_recorded_us;
    bool as_recorded;                       /* the step is that, too: of one of the two its time without the profiler was given, of the other not */
    double host_factor;                     /* equal ops took so many times as long on b's host; taken out of b_step_us. 1: as long */
    struct diff_number numbers[DIFF_NUMBERS];
    struct diff_row *split, *ops, *kernels; /* split: the parts of a step as recorded; the others by size of the difference. Ops by the
                                               time of what they launched on a device; where there is none, by their own on the host */
    struct diff_row *host_ops;              /* by their own time on the host, as recorded; empty where ops are that already */
    int n_split, n_ops, n_kernels, n_host_ops;
    bool kernels_by_op;                     /* the devices differ, and so do their kernels: those of one op and kind are a row */
    int64_t ops_equal, ops_added, ops_removed;      /* names on the host in the last step (ops, ranges, calls, the step itself):
                                                       in both with equal counts, only in b, only in a */
    struct arena arena;
};

enum status diagnosis_diff(struct trace_diff *out, const struct diagnosis *a, const struct diagnosis *b, struct error *err);
void trace_diff_release(struct trace_diff *d);

#endif
