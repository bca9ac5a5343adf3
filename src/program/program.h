/* A step as plain data: values and a flat list of ops over them. Models build the forward part, passes rewrite it, the
 * executor runs it, the printer and the cost model read it. There is no pointer to device memory in here.
 *
 * Activations, gradients and constants are written by exactly one op, before they are read. Parameters, states and tables
 * persist between steps and may be updated in place: the op then has the value among its inputs and its outputs. A table
 * may instead be written whole by one op of the setup, which the executor runs once, when it is made. */
#ifndef HONE_PROGRAM_PROGRAM_H
#define HONE_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/peaks.h"
#include "program/ops.h"

enum value_kind {
    VALUE_PARAMETER,
    VALUE_ACTIVATION,
    VALUE_GRADIENT,
    VALUE_STATE,        /* moments, counters, accumulators: kept between steps, not trained */
    VALUE_INPUT,        /* filled by the host before a step */
    VALUE_CONSTANT,     /* made by an op from attributes alone: masks, tables */
    VALUE_HOST,         /* a scalar the host reads after the step */
    VALUE_TABLE,        /* kept between steps, but neither trained nor saved: constants made once, recent metrics */
};
/* The setup runs once, before the first step; a step is the phases from data on. */
enum phase { PHASE_SETUP, PHASE_DATA, PHASE_FORWARD, PHASE_BACKWARD, PHASE_COMMUNICATE, PHASE_OPTIMIZE, PHASES };
enum param_init { INIT_ZEROS, INIT_ONES, INIT_NORMAL, INIT_VALUE };       /* INIT_VALUE: init_std everywhere, a state too */
enum param_role { ROLE_MATRIX, ROLE_EMBEDDING, ROLE_NORM, ROLE_BIAS };

enum { MAX_RANK = 4, NO_LAYER = -1 };
typedef int32_t value_id;
#define NO_VALUE ((value_id)-1)

struct shape {
    int rank;                       /* 0: a scalar */
    int64_t dim[MAX_RANK];
};

/* A part of a parameter, from number `first` on: what one rank has of its moments. */
struct value_slice {
    value_id of;
    int64_t first;
};

struct value {
    const char *name;
    enum value_kind kind;
    enum dtype dtype;
    struct shape shape;
    int layer;
    /* parameters only */
    enum param_init init;
    enum param_role role;
    float init_std;
    int group;                      /* parameters that are selected and updated together; -1: always updated */
    value_id unit;                  /* the first of those parameters of a group whose norm counts as one: q, k and v */
    value_id grad;                  /* the gradient that the optimizer uses; NO_VALUE until autodiff, and where other ranks have it */
    const struct value_slice *slice;        /* states: of what; NULL: whole */
};

struct op_profile {                 /* filled by the executor when it measures */
    int64_t calls, total_ns;
};

/* A backend may leave an op out where held[group] is 0: what it gives is not read then. */
struct op_leave {
    value_id held;                  /* of OP_HELD */
    int group;
    double share;                   /* of its runs in which it is needed, on the average: for its costs */
};

struct op {
    enum op_kind kind;
    enum phase phase;
    int layer;                      /* NO_LAYER outside the blocks */
    const char *made_by;            /* "model" or the name of a pass */
    int n_in, n_out;
    value_id *in, *out;
    struct op_attrs attrs;
    bool last;                      /* runs in the last micro-batch of a step alone */
    bool timed;                     /* the kernel's variant is chosen by timing: pass autotune */
    const struct op_leave *leave;   /* NULL: it always runs */
    int call;                       /* ops in a row that have the same number are one call, in which none reads or writes what another one
                                       writes: pass group-levels; 0: it is one by itself */
    struct op_profile profile;
};

struct name_table {                 /* names.c */
    value_id *slots;
    int cap, known;                 /* values [0, known) are in it */
};

/* What the pass mixed-precision aims at: narrow values (BF16, F16), or, where that is F32, operands of products that are rounded. */
struct precision_goal {
    enum dtype narrow;
    enum rounding round;
    bool attention;                         /* operands of attention, too, may be rounded */
    const struct program *like;             /* another one of the same weights: those that it has narrow copies of, this one has, too, and writes, and no
                                               others. NULL: as memory lets it. Read by the pass alone */
};
#define LOSS_SCALE "loss_scale"         /* names of the scale and its count begin so */

/* How the optimizer's state is divided over ranks: bucket by bucket, as gradients travel. The numbers of its parameters, one after the other,
 * are cut into a slice for every rank; slice_place says whose is which. */
struct program_bucket {
    int n;
    const value_id *parameter;
    const int64_t *start;                   /* n + 1: where every parameter begins among the numbers of all, and where they end */
    const int64_t *cuts;                    /* ranks + 1 */
};
struct slice { int64_t first, n; };         /* of a parameter; n 0: nothing of it */

struct program {
    const char *name;
    struct value *values;
    int n_values, cap_values;
    struct op *ops;
    int n_ops, cap_ops;
    value_id tokens, targets, segments;     /* inputs; NO_VALUE where the program has none */
    value_id positions, types, features;    /* the same: rows of the table of positions; targets of another kind; numbers of a token */
    value_id starts;                        /* the same: where in its row the sample of a token begins */
    value_id logits, loss, count;           /* loss: mean over `count` targets that are not padding */
    value_id step, norm;                    /* optimizer step counter and global gradient norm */
    value_id loss_scale;                    /* a state: what gradients are multiplied by until they are clipped; NO_VALUE: 1 */
    int micro_batches;                      /* data, forward and backward run so often per optimize */
    bool fewer_meetings;                    /* threads meet, and ops of a GPU wait, only where an op needs what another one wrote: pass
                                               fewer-meetings */
    bool launched;                          /* a host starts its ops on a device that is elsewhere: what the pass capture is for */
    bool captured;                          /* the device replays them as a graph that one call starts: pass capture */
    struct precision_goal precision;        /* of the pass mixed-precision */
    int linger;                             /* for so many ops after its last one a value's memory is not given to another value, so that
                                               the ops in between need not wait for each other where they run side by side */
    bool in_buckets;                        /* gradients are made where their bucket is, as far as that is aligned for it */
    int ranks;                              /* that `buckets` are divided over */
    const struct program_bucket *buckets;   /* of the arena */
    int n_buckets;                          /* 0: every rank has all of the optimizer's state */
    int64_t group_most;                     /* numbers of a value, for the pass group-levels: nodes with larger ones are left alone; 0: none is,
                                               below 0: all are */
    double memory_limit;                    /* bytes that a step should stay within, for passes that trade time for memory; 0: none */
    struct error error;                     /* the first mistake of a builder; see program_validate */
    /* what the next op gets */
    enum phase phase;
    int layer;
    const char *made_by, *scope;
    struct name_table names;
    struct arena arena;
};

struct program *program_new(const char *name);
void program_free(struct program *p);

/* Names the ops and values that follow: scope "blocks.0.attn", layer 0. The text is copied. */
void program_scope(struct program *p, int layer, const char *format, ...) __attribute__((format(printf, 3, 4)));

value_id program_add_value(struct program *p, const char *name, enum value_kind kind, enum dtype dtype,
                           struct shape shape);
value_id program_add_parameter(struct program *p, const char *name, struct shape shape, enum param_role role,
                               enum param_init init, float std);
/* The first value of that name; NO_VALUE: none. Names are changed by program_rename alone. */
value_id program_find(const struct program *p, const char *name);
void program_rename(struct program *p, value_id v, const char *name);   /* the text is not copied */
void program_keep_values(struct program *p, int n);                     /* the first n; nothing may use the others */
void program_release_names(struct program *p);                          /* for program_free */

/* Appends an op. Its outputs are new values of the kind the phase implies (activation, gradient, or constant when it
 * has no inputs), shaped by the op table and named scope.name, except for ops that update values in place (ops.h), whose
 * outputs are their own inputs. Returns the index of the op, or -1 after a mistake, which p->error then describes. */
int program_add_op(struct program *p, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in,
                   const value_id *in);
/* The same for ops with one output that matters: returns it. The variadic arguments are value ids. */
value_id program_emit(struct program *p, enum op_kind kind, struct op_attrs attrs, const char *name, int n_in, ...);

/* Checks every rule above and the shapes of every op; an error names the op and its values. */
enum status program_validate(const struct program *p, struct error *err);

/* A readable listing: values by kind, then the ops with shapes, FLOPs and bytes. */
void program_print(const struct program *p, FILE *to);

/* Ops [first, end) that are one call with op i, which is alone in it for the most part. */
struct op_call { int first, end; };
struct op_call program_call(const struct program *p, int i);

struct program_cost {
    double flops, bytes;
    int ops;
};
struct program_cost program_cost(const struct program *p, enum phase phase);
double op_flops(const struct program *p, const struct op *op);
double op_bytes(const struct program *p, const struct op *op);
/* Of an op's arithmetic, what computes gradients, 0 to 1: an op of the forward may make them on the way (OP_LINEAR_LOSS). */
double op_gradient_share(const struct program *p, const struct op *op);
enum numbers program_numbers(const struct program *p);          /* that its products have, the narrowest of them */
/* The peak of those: what MFU divides by. */
struct products_peak program_peak(const struct program *p, const struct peaks *peaks);
/* FLOPs over the measured peak of the op's numbers, and bytes over the bandwidth of the level that holds them. */
struct op_roof { double arithmetic_us, traffic_us; };
struct op_roof op_roof(const struct program *p, const struct op *op, const struct peaks *peaks);
/* The larger of the two; *memory_bound (may be NULL) says which it is. */
double op_floor_us(const struct program *p, const struct op *op, const struct peaks *peaks, bool *memory_bound);
/* What an op multiplies: its peak is that of these numbers. */
enum numbers op_numbers(const struct program *p, const struct op *op);
/* types.c: the type that an output gets from the inputs, and the first value whose type does not fit; NO_VALUE: all do. */
enum dtype op_result_type(const struct program *p, const struct op *op, int i);
value_id op_mistyped_value(const struct program *p, const struct op *op);
bool op_is_rounded_ahead(const struct program *p, const struct op *op);
double op_runs_per_step(const struct program *p, const struct op *op);      /* micro-batches repeat all but the optimizer; setup: 0 */
double program_runs_per_step(const struct program *p);      /* of all its ops */
int64_t program_parameters(const struct program *p);        /* trained numbers */

/* slices.c: the slice that a rank has of a bucket, by its number, and of parameter i of it. */
int slice_place(int rank, int ranks);
struct slice slice_of_parameter(const struct program *p, const struct program_bucket *b, int i, int rank);

struct shape shape_of(int rank, ...);                       /* dims as int64_t */
int64_t shape_count(struct shape s);
bool shape_equal(struct shape a, struct shape b);
int64_t shape_rows(struct shape s);                         /* product of all but the last dimension */
int64_t shape_last(struct shape s);                         /* the last dimension; 1 for a scalar */
const char *shape_text(struct shape s, char out[64]);       /* "(8, 128, 256)" */
size_t dtype_size(enum dtype t);
const char *dtype_name(enum dtype t);
static inline bool dtype_is_narrow(enum dtype t) { return t == BF16 || t == F16; }      /* a float of 16 bits */
const char *value_kind_name(enum value_kind k);
const char *phase_name(enum phase p);
size_t value_bytes(const struct value *v);
bool value_is_persistent(const struct value *v);            /* parameter, state, input, host or table */

#endif
