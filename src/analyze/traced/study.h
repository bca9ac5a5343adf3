/* What rules on traces share: the trace under study, questions about its ops, and the charge a rule makes. */
#ifndef HONE_ANALYZE_TRACED_STUDY_H
#define HONE_ANALYZE_TRACED_STUDY_H

#include "analyze/diagnosis.h"
#include "analyze/traced/replay.h"
#include "analyze/traced/view.h"
#include "core/ranges.h"

/* ---- ops by what they do; ops.c has the table ---- */

enum task {
    TASK_OTHER,
    TASK_LINEAR,          /* a product with a matrix: linear, mm, addmm, and the ops around them: matmul */
    TASK_BATCHED,         /* a product per batch and head: bmm, baddbmm */
    TASK_SOFTMAX,
    TASK_ATTENTION,       /* the whole of attention in one op */
    TASK_NORM,            /* layer norm, RMS norm, batch norm */
    TASK_CONVOLUTION,
    TASK_EMBEDDING,
    TASK_LOSS,
    TASK_CREATE,          /* makes a tensor from nothing: full, ones, arange, tensor(...) */
    TASK_SHAPE,           /* changes how a tensor is seen: view, transpose, slice; no work */
    TASK_CAST,            /* to, _to_copy: dtype or device */
    TASK_COPY,            /* copy_, clone, contiguous */
    TASK_SCALAR,          /* hands a number to the host: item, is_nonzero */
    TASK_REDUCE,          /* to few numbers: norm, sum, mean, max */
    TASK_FILL,            /* zero_, fill_ */
    TASK_JOIN,            /* cat, stack */
    TASK_FIXED,           /* turns a constant into another: triu, cos, outer, masked_fill, logical ops */
    TASK_ELEMENTWISE,
    TASK_UPDATE,          /* in place, as optimizers do tensor by tensor: addcdiv_, lerp_, addcmul_ */
    TASK_MULTI,           /* over lists of tensors: _foreach_, _fused_ */
    TASK_BACKWARD,        /* a node of the backward graph: evaluate_function: X */
};

enum { MOST_DIMS = 8 };
struct dims {
    int n;                                  /* -1: not a tensor, or not recorded */
    int64_t size[MOST_DIMS];
};

/* ---- the study ---- */

struct twin {                               /* a backward node and the op whose gradient it computes */
    int64_t number;
    int32_t step, node, op;                 /* op -1: not in the trace */
};

/* ---- what the device can do; device.c ---- */

enum maker { MAKER_UNKNOWN, MAKER_NVIDIA, MAKER_AMD, MAKER_OTHER };      /* OTHER: neither CUDA nor HIP, such as MTIA */
struct device_facts {
    enum maker maker;
    int major, minor;                       /* capability; 0: not said */
    bool half_units;                        /* for products of 16 bits: tensor cores, matrix cores */
    bool bf16, tf32;
};
struct device_facts device_facts(const struct view *v);

struct uses {
    bool compiled;                          /* code of torch.compile runs */
    double graphs;                          /* of the device's time, what launches of whole graphs started */
};
struct uses study_uses(const struct view *v);   /* uses.c */
bool name_is_compiled(const char *name);        /* of a call or kernel that torch.compile made */

/* ---- fixes; fix.c ---- */

/* What lies between the scores of attention and their softmax: NONE, a BIAS that is added, a MASK, which may be causal. */
enum scores_mask { MASK_UNKNOWN, MASK_NONE, MASK_BIAS, MASK_MASK };

/* What a fix is written for. Zero is what nothing is known of: an NVIDIA device of today, AdamW. */
struct fix_facts {
    const char *optimizer;                  /* class of the user's optimizer: "SGD"; NULL: not named in the trace */
    const char *device;                     /* as PyTorch calls it: "cuda", "xpu", "cpu"; NULL: "cuda" */
    const char *place;                      /* frame or module in which the fault lies; NULL: not known */
    enum maker maker;
    bool no_bf16, tf32;                     /* products: the device has no units for bf16; they run in TF32 */
    bool compiled, some_graphs;             /* the program has that already */
    bool planes;                            /* images are turned round for convolutions */
    enum scores_mask mask;                  /* of attention that is written out */
    const char *collective;                 /* the kind that costs most: "all_reduce"; NULL: not known */
    bool forward_only;                      /* nothing in the trace learns */
    bool synchronizes;                      /* waits are asked for, and read nothing */
    bool clips;                             /* the norm of gradients is computed before the update */
    bool frozen;                            /* what runs without gradients is not the model that learns */
    const char *holder;                     /* what holds the device up */
    int times;                              /* the batch whose gain is promised; 0: not known */
    int threads;                            /* that ops have on a CPU; 0: not known */
    bool accumulates;                       /* several backward passes make an update */
};

struct study {
    const struct view *v;
    struct fix_facts facts;                 /* what fixes are written for; without what depends on the rule */
    struct device_facts device;
    struct uses uses;
    struct replay *replay;
    const struct rank_comm *comm;           /* the trace's collectives; NULL: not looked for */
    struct diagnosis *d;
    uint8_t *tasks;                      /* by name */
    int32_t *top;                           /* (n_top) host ops of the replayed steps with no op around them, by start: what the
                                               user's code and the backward engine call, one after the other */
    int32_t n_top;
    struct twin *twins;                     /* (n_twins) backward nodes by step and sequence number; see study_twins */
    int32_t n_twins;
    double unit_ns;                         /* usual host time of one recorded op, without the profiler */
    double base_ns;                         /* a step, replayed as it is */
    double device_ns, host_ns;              /* of a step: device busy, host work */
    double recorded_ns, span_ns;            /* a step as recorded; the host's side of it, with its waits. 0: no bound */
    double comm_ns;                         /* of a step: waiting for collectives of the host's own threads */
    double all_host_ns;                     /* of it the host's work with the profiler's */
    double unexplained_ns;                  /* of base_ns, waits that no work in the trace explains */
    struct study_base { struct replay_cost cost; struct replay_result result; } bases[4];  /* (n_bases) steps without an edit */
    int n_bases;
    bool trains;                            /* has backward nodes */
    struct arena *arena;                    /* for texts */
};

void study_init(struct study *s, const struct view *v, struct replay *r, struct diagnosis *d);
void study_release(struct study *s);

enum task study_task(const struct study *s, int32_t host);   /* TASK_OTHER for what is not a host op */
struct dims study_dims(const struct study *s, int32_t host, int input);
const char *study_types(const struct study *s, int32_t host);   /* as written in the trace; "" when not recorded */
struct dims dims_take(const char **at);                          /* one shape, "[10, 256]"; at is left at its ']', or at what does not belong there */
int64_t dims_elements(struct dims d);
bool dims_equal(struct dims a, struct dims b);
bool study_in_backward(const struct study *s, int32_t host);    /* inside a backward node */
int32_t study_annotation(const struct study *s, int32_t host, const char *prefix);      /* the enclosing one; -1 */
int32_t study_top(const struct study *s, int32_t host);         /* the outermost op around; itself; -1 */
double study_device_ns(const struct study *s, int32_t host);    /* of all that the op and its inside launched */
int study_launches(const struct study *s, int32_t host);
double per_step(const struct study *s, double total);           /* over the replayed steps */
struct range study_range(const struct study *s, int32_t host);  /* when it ran, in ns from the first of them on */

bool study_accumulates(const struct study *s);                  /* gradients of several backward passes go into one update; rule_optimizer.c */
bool study_learns(const struct study *s, int32_t host);         /* a backward node belongs to it or an op inside */

/* Inputs of the op that have a shape; a creating op has none. */
int study_tensors(const struct study *s, int32_t host);

/* In the replayed steps, on a thread that makes the step. */
static inline bool study_has(const struct study *s, int32_t host)
{
    const struct event *e = view_event(s->v, host);
    return s->replay->training[e->track] && replay_covers(s->replay, e->start_ns);
}
static inline bool study_calls(const struct study *s, int32_t host, enum call_kind kind)
{
    const struct event *e = view_event(s->v, host);
    return e->kind == EVENT_RUNTIME && s->v->call_kinds[e->name] == kind;
}
/* The CPU does all the work: host threads are the lanes of the replay. */
static inline bool study_on_cpu(const struct study *s) { return !s->v->n_device && !s->d->device_lost; }
int32_t study_index(const struct study *s, int32_t host);       /* of an outermost op in `top`; -1 */
bool study_same(const struct study *s, int32_t a, int32_t b);   /* top[a] and top[b]: one op on equal shapes, by one thread */
bool study_is_backward(const struct study *s, int32_t a);       /* top[a] */
bool study_works(const struct study *s, int32_t host);          /* the model's own work is in it: what ends a loop over tensors */
/* An op of this kind in the call, itself included; -1. */
int32_t study_find(const struct study *s, int32_t host, enum task task);
/* The copy that the call makes, if it goes that way: "HtoD", "DtoH". host -1: none. */
const struct event *study_copy(const struct study *s, int32_t host, const char *way);

/* ---- loops of the user's code: the same ops with the same shapes again and again ---- */

struct loop {
    int32_t first;                          /* index into top */
    int32_t period, ops;                    /* ops in the body; in all its turns, the last of which may be cut short */
};
/* The shortest body that starts at top[at] and has at least `least` turns; *out gets so many. false: none. */
bool study_loop(const struct study *s, int32_t at, int least, int longest, struct loop *out);
void study_loop_extend(const struct study *s, struct loop *l);         /* to all its turns */

/* ---- what holds the device up; holders.c ---- */

enum { MOST_HOLDERS = 16 };
struct holder {
    const char *name;                       /* a Python frame, the user's range, or an op; NULL: the trace does not say */
    double ns;                              /* of the replayed steps, as recorded, beyond what is usual */
};
struct holders {
    struct holder at[MOST_HOLDERS];         /* (n) the longest first */
    int n, stretches;
    double all_ns, longest_ns;
    int32_t longest;                        /* what ends the longest stretch outside of ops; -1: none, or the step's end */
};
/* Stretches outside of ops that are longer than the limit, and ops that work on the host alone. */
struct holders study_holders(const struct study *s, double limit_ns);
bool stretch_is_op(const struct study *s, int32_t host);

/* ---- what a larger batch makes longer, per step; batch_waits.c ---- */

bool study_is_bound_by(const struct study *s, double ns);       /* waits of so long in a step are why it is long */
double study_loader_ns(const struct study *s);      /* in the loader, without handing a finished batch over */
double study_loader_left(const struct study *s);    /* of the time in the loader as recorded: the rest is the profiler's, which records ops that make a batch */
double study_python_ns(const struct study *s);      /* long stretches outside of ops and of the optimizer, as recorded */

/* ---- threads of ops on the CPU; cpu_threads.c ---- */

enum { PARALLEL_ELEMENTS = 32768 };         /* of an elementwise op, above which PyTorch divides it among threads */
int study_threads(const struct study *s);   /* as the ops' own buffers tell it; 0: nothing does */
double *study_own_ns(const struct study *s);        /* (n_host) recorded, of the replayed steps, without what is inside; the caller frees */
double *study_work_ns(const struct study *s);       /* the same without the profiler */

/* ---- views of the judged steps ---- */

struct diagnose_options;
void study_roofline(struct study *s, const struct diagnose_options *options);   /* roofs, peaks, mfu; roofline.c */
void study_modules(struct study *s);        /* modules; modules.c */
void study_frames(struct study *s);         /* frames; modules.c */
void study_iteration(struct study *s);      /* iteration; phases_time.c */
bool study_is_range(const struct study *s, int32_t host);      /* an annotation that the user made; where.c */
enum { PEAK_F32 = 0, PEAK_TF32 = 1, PEAK_16 = 2 };
struct device_peak { double tflops[3], gbps; };                 /* vendor's, dense; 0: unknown */
struct device_peak device_peak(const char *name);               /* peaks_known.c */

/* ---- charges ---- */

struct charge {
    struct edit edit;                       /* what the fix takes away */
    double involved_ns;                     /* time per step that the fault takes part in; 0: what the edit takes away */
    double doubt;                           /* of what is won, relative; the interval's half width */
    struct finding finding;                 /* the rule gives where, cause, fix (NULL: the rule's text) and evidence */
    bool may_win_nothing;                   /* what the gain needs is not in a trace: its low end is 1 */
    bool memory_only;                       /* no time is won: the finding stands for itself */
    struct fix_asks { bool tf32, planes, clips, frozen, synchronizes; enum scores_mask mask; const char *holder, *collective; int times, threads; } asks;       /* what the code of the fix depends on; see fix.h */
    double speedup;                         /* set by rules whose gain is per sample, not by replay; 0: replay */
};

/* Takes a call with all inside out of the step: host time, waits and device work. `part` stays, 0 to 1. */
void charge_call(const struct study *s, struct charge *c, int32_t host, double part);
/* The same with the backward nodes that belong to the ops inside. */
void charge_with_backward(const struct study *s, struct charge *c, int32_t host, double part);
/* Only the host's side, or only the device's. */
void charge_host(const struct study *s, struct charge *c, int32_t host, double part);
void charge_device(const struct study *s, struct charge *c, int32_t host, double factor);
void charge_host_with_backward(const struct study *s, struct charge *c, int32_t host, double part);
/* Backward nodes of the op and the ops inside: calls `each` for every one. */
void study_twins(const struct study *s, int32_t host, void (*each)(void *context, int32_t node), void *context);

/* What pinned memory would win of the copies that move a batch to the device; rule_uploads.c. */
void charge_batch_copies(struct study *s, struct charge *c);

typedef bool trace_rule_fn(struct study *s, struct charge *c);  /* true: the fault is there */
struct trace_rule {
    const char *id;
    trace_rule_fn *detect;
};
extern const struct trace_rule trace_rule_table[];      /* ends with a NULL id */

bool study_found(const struct study *s, const char *rule);      /* an earlier rule of the table fired */

/* Place in words: the op, and the user's frame with its module where stacks are there, else the user's range or the op around; where.c. */
const char *study_where(const struct study *s, int32_t host);
const char *study_place(const struct study *s, int32_t host);   /* the same without the op; NULL: not known */
int32_t study_forward_of(const struct study *s, int32_t host);  /* the op whose gradient the backward node around a call computes; -1 */
const char *study_text(const struct study *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *study_us(const struct study *s, double ns);         /* "812 µs" of ns */
const char *study_number(const struct study *s, double number);        /* a count, or a mean of counts: "2.5", "1532" */
const char *study_bytes(const struct study *s, double bytes);   /* "12.6 MB" */
const char *study_kernel(const struct study *s, const char *name);      /* without return type, template and parameters */

#endif
