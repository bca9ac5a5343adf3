/* What the files of the CUDA module share. */
#ifndef HONE_OPS_CUDA_CUDA_INT_H
#define HONE_OPS_CUDA_CUDA_INT_H

#include "ops/cuda/kernel.h"
#include "ops/cuda/lanes.h"
#include "ops/cuda/module.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STAGES = 32, STAGE_BYTES = 1 << 20 };           /* a whole batch: what does not fit waits for the step before */

/* A piece of an upload that is on its way, or has come as far as the device but not to its place. */
struct landing {
    void *to;
    const void *from;               /* a stage on the device */
    size_t bytes;
};
struct landings {
    struct landing list[STAGES];
    int n;
};

/* Uploads go through pinned memory and, in a stream of their own, into memory of the device that nothing else uses: so a batch travels
 * while the step before it runs. What has landed is put in its place when the next thing is run or read. */
struct cuda_staging {
    char *host, *device;            /* (STAGES, STAGE_BYTES) */
    cudaStream_t stream;            /* copies from the one to the other */
    cudaEvent_t there[STAGES];      /* the stage is on the device, and the host may fill it again */
    cudaEvent_t placed;             /* all that had landed until then is in its place, and the device's stages may be filled again */
    int next;
    struct landings landed;         /* not in their places yet: what is in the stages before `next` */
};

/* A row of ops beside the main one, with what they need for themselves. */
struct cuda_side {
    cudaStream_t stream;
    void *workspace;                /* BLAS_WORKSPACE bytes, and COUNTERS */
};

/* What travels between ranks. A run is what is launched or captured at once: what leaves the main stream comes back to it with its end. */
enum { RUNS_AHEAD = 2 };
struct cuda_comm {
    bool nccl;                      /* NCCL sums, else the group does, through pinned memory */
    cudaStream_t stream;            /* NULL until a list has such sums */
    cudaEvent_t forked, joined;
    void *communicator;             /* of NCCL, once one was needed */
    bool lost;                      /* a rank was, and the communicator was given up */
    struct nccl_leaving *leaving;   /* who closes it then */
    cudaEvent_t ran[RUNS_AHEAD];    /* behind the last runs, the oldest at ran[next_ran]; NULL: there were not so many */
    int next_ran;
    bool used;                      /* the stream, in this run */
    bool silent;                    /* nothing is to travel: kernels are counted */
    int64_t run;
    const char *failed;             /* what NCCL said; NULL: nothing */
    struct cuda_landing *landings;  /* where slices of weights come to, one for each bucket (gathers.c) */
    struct cuda_pinned *pinned;     /* where the group sums, one for each bucket of a step, whichever list it is in */
};

struct cuda_backend {
    struct backend base;
    struct cuda_device about;
    cudaStream_t stream;            /* everything but copies to the device begins and ends in it, in order */
    cublasHandle_t blas;            /* NULL until ops are prepared */
    void *blas_workspace;           /* BLAS_WORKSPACE bytes, and COUNTERS */
    struct cuda_plan *plans;        /* a list of all products that were asked for */
    const struct cuda_choices *choices;     /* where what was timed is remembered */
    struct cuda_side sides[LANES_MOST];     /* [0] is not used: lane 0 is the stream above */
    struct cuda_staging staging;
    struct cuda_comm comm;
    enum cuda_graphs graphs;
    int lanes;                      /* rows of ops in a graph, at most */
    bool names;                     /* HONE_NVTX=1: ranges with the names of ops and phases */
    bool merges;                    /* ops may do the work of others on the way; not with HONE_CUDA_MERGE=0 */
    struct device_event *events, *launches;     /* of the last measured run, and room for the host's calls in one */
    int n_launches, room;
    bool noting;                    /* launches are noted */
    bool checks;                    /* HONE_CUDA_SYNC=1: every op is waited for, and a failure named by its op */
};

/* OK, or what CUDA said happened. */
enum status cuda_said(cudaError_t e, struct error *err, const char *what);

/* device.c: the GPU, or why there is none. */
int cuda_count_devices(void);
enum status cuda_find_device(struct cuda_device *out, int index, struct error *err);

/* memory.c */
enum status cuda_staging_new(struct cuda_staging *s, struct error *err);
void cuda_staging_free(struct cuda_staging *s);
size_t cuda_available(struct backend *b);
void *cuda_alloc(struct backend *b, size_t bytes);
void cuda_free_memory(struct backend *b, void *memory, size_t bytes);
enum status cuda_upload(struct backend *b, void *to, const void *host, size_t bytes, struct error *err);
enum status cuda_download(struct backend *b, void *host, const void *from, size_t bytes, struct error *err);
/* Puts what was uploaded in its place, in the backend's stream; who uses memory of the device in that stream calls it first. */
enum status cuda_place_uploads(struct cuda_backend *b, struct error *err);

/* landing.cu: starts a kernel that copies all of them; none reads what another one writes. */
cudaError_t cuda_place(const struct landings *l, cudaStream_t stream);

/* ---- lists of ops ---- */

struct replay {                     /* ops [first, end) */
    int first, end;
    cudaGraphExec_t graph;          /* NULL: were run once */
    bool none;                      /* there is no memory for one */
    void *scratch[LANES_MOST];      /* of the lanes beside the main one */
    void *own;                      /* of the ops that run in pieces */
    bool named;                     /* CUPTI knows whose its nodes are */
};

struct prepared {
    struct cuda_call *calls;
    const struct cuda_kernel **kernels;
    const struct bound_op *ops;
    int n;
    struct replay *replays;
    int n_replays;
    cudaEvent_t *events;            /* (n + 1): around measured ops; NULL until something is measured */
    double *occupancy;              /* (n) of the ops, as CUPTI told it; NULL until it did */
    void *biases;                   /* memory of narrow biases, and what is cast to it; NULL: none (biases.cu) */
    struct cuda_cast *casts;
    void *parts;                    /* memory of products that their reader adds up; NULL: none (together.cu) */
    struct cuda_reduction *reductions;      /* (n_reductions): buckets that travel; NULL: none */
    int n_reductions, first_reduction;      /* first: the op that starts the first */
    struct cuda_gather *gathers;    /* (n_gathers): ops by which slices of weights travel; NULL: none */
    int n_gathers;
};

/* run.c */
const char *cuda_kernel_of(enum op_kind kind);
const struct cuda_pieces *cuda_pieces_of(enum op_kind kind);        /* NULL: it runs in one */
enum status cuda_finish(struct backend *b, struct error *err);
enum status cuda_scratch(struct backend *b, size_t *bytes, const struct program *p, const struct op *op, struct error *err);
enum status cuda_prepare(struct backend *b, struct prepared **out, const struct bound_op *ops, int n, void *scratch, size_t bytes,
                         struct error *err);
struct prepared_op cuda_about(const struct prepared *p, int i);
enum status cuda_run(struct backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err);
void cuda_release(struct backend *b, struct prepared *p);
/* Starts a piece of op i (-1: the whole op), as `call` has it; and ops [first, end), one by one. */
enum status cuda_start_op(struct cuda_backend *b, const struct prepared *p, int i, int piece, const struct cuda_call *call, struct error *err);
enum status cuda_start_ops(struct cuda_backend *b, const struct prepared *p, int first, int end, struct error *err);

/* reductions.c: sums over ranks (reductions.h). Before the first run with such ops all ranks open NCCL together, where it is that. */
enum status cuda_reductions_make(struct cuda_backend *b, struct prepared *p, struct error *err);
void cuda_reductions_release(struct prepared *p);
enum status cuda_comm_stream(struct cuda_backend *b, struct error *err);       /* opens the stream, unless it is open */
/* Around a run: with NCCL no more than RUNS_AHEAD of them are under way. */
enum status cuda_comm_wait_turn(struct cuda_backend *b, struct error *err);
void cuda_comm_note_run(struct cuda_backend *b);
enum status cuda_comm_open(struct cuda_backend *b, const struct prepared *p, int first, int end, struct error *err);
void cuda_comm_begin(struct cuda_backend *b);
enum status cuda_comm_end(struct cuda_backend *b, struct error *err);
void cuda_comm_close(struct cuda_backend *b);
cudaError_t cuda_wait(struct cuda_backend *b);          /* until all in the main stream is done, or a rank is lost */
cudaError_t cuda_wait_for(struct cuda_backend *b, cudaEvent_t event);          /* until this is, or a rank is lost; NULL: as above */

/* gathers.c: slices of weights */
enum status cuda_gathers_make(struct cuda_backend *b, struct prepared *p, struct error *err);
void cuda_gathers_release(struct prepared *p);
void cuda_landings_free(struct cuda_backend *b);

/* items.c: the ops of a replay and the pieces of ops, in their order; what is theirs alone is allocated for the replay. */
struct cuda_piece { int op, piece; };       /* op: of the list that is prepared; piece -1: all of it */
struct cuda_items {
    struct cuda_call *calls;        /* (ops of the replay), as they are but for memory of their own */
    struct cuda_piece *pieces;      /* (n) */
    struct lane_item *list;         /* (n) */
    struct lane_touch *touches;
    int n;
};
/* False: there is no memory; what there is is to be released. */
bool cuda_items_make(struct cuda_items *out, struct cuda_backend *b, const struct prepared *p, struct replay *r);
void cuda_items_release(struct cuda_items *items);
/* What lanes of the program's ops may take: memory for cuBLAS, scratch, and what ops in pieces keep. */
size_t cuda_beside(struct backend *b, const struct program *p);
size_t cuda_parts_most_bytes(const struct program *p);  /* together.cu: of products that their reader adds up; each makes its sum where there are none */

/* times.c: when ops [first, end) ran, measured. As they run otherwise, by CUPTI's records of kernels; where that cannot be, one by one
 * with an event behind each. */
enum status cuda_run_measured(struct cuda_backend *b, struct prepared *p, int first, int end, struct lane_time *times, struct error *err);
void cuda_note_launch(struct cuda_backend *b, const struct op *op, int64_t start);      /* the host's call ends now; op NULL: of a graph */
void cuda_release_times(struct prepared *p);
int cuda_kernels(struct backend *b, struct prepared *p, int first, int end);

/* graph.c: one by one for the first time, as a graph from the second. */
enum status cuda_replay(struct cuda_backend *b, struct prepared *p, int first, int end, struct error *err);
void cuda_release_replays(struct cuda_backend *b, struct prepared *p);
/* Captures the graph of a range again when it is next run, now that CUPTI listens and learns whose its nodes are; once. */
void cuda_name_nodes(struct cuda_backend *b, struct prepared *p, int first, int end);
/* Whether ops are captured at all: those of a program, and a range of prepared ones, which are of one program. */
bool cuda_captures_program(const struct cuda_backend *b, const struct program *p);
bool cuda_captures(const struct cuda_backend *b, const struct prepared *p, int first, int end);
/* Whether running a range will launch a graph. */
bool cuda_has_graph(struct prepared *p, int first, int end);

/* names.c: ranges for profilers; nothing is done where b->names is not set. Each that begins is ended by cuda_name_end. */
void cuda_name_graph(const struct cuda_backend *b, const struct bound_op *first, const struct bound_op *last);
void cuda_name_phase(const struct cuda_backend *b, enum phase ph);
void cuda_name_op(const struct cuda_backend *b, const struct cuda_call *c);
void cuda_name_end(const struct cuda_backend *b);

/* Enough for the largest products of Hopper. */
enum { BLAS_WORKSPACE = 32 << 20, COUNTERS = 4096, WORKSPACE = BLAS_WORKSPACE + COUNTERS };     /* counters: see cuda_counter */
/* cuda.c: the handle of cuBLAS, made when it is first asked for; and a lane beside the main one, likewise. */
enum status cuda_open_blas(struct cuda_backend *b, struct error *err);
bool cuda_open_side(struct cuda_backend *b, int lane);
/* From now on the handle puts its work into that lane, with the lane's memory; 0 is the main one, where it belongs. */
enum status cuda_use_blas(struct cuda_backend *b, int lane, struct error *err);

/* peaks.cu */
enum status cuda_peaks(struct backend *b, struct peaks *out, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
