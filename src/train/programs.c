/* The programs of a run: the model, the passes that the config asks for, the training step around it. */
#include <sched.h>
#include <string.h>

#include "core/setup.h"
#include "core/system.h"
#include "model/model.h"
#include "ops/cpu/bf16.h"
#include "passes/passes.h"
#include "train/train_int.h"

const char *train_passes_text(const int *places, char out[PASSES_TEXT_MAX])
{
    size_t used = (size_t)snprintf(out, PASSES_TEXT_MAX, "none");
    const char *before = "";
    for (int i = 0; pass_table[i].name; i++) {
        if (!places[i])
            continue;
        used = *before ? used : 0;
        used += (size_t)snprintf(out + used, used < PASSES_TEXT_MAX ? PASSES_TEXT_MAX - used : 0, "%s%s ×%d", before,
                                 pass_table[i].name, places[i]);
        before = ", ";
    }
    return out;
}

enum status forward_program(struct program **out, const struct config *c, struct model_options options, int *places,
                            struct error *err)
{
    struct program *p = NULL;
    enum status st = model_build(&p, &c->model, options, err);
    if (st == OK) {
        p->launched = c->device == DEVICE_CUDA;
        st = pass_optimize(p, STAGE_FORWARD, config_pass_set(c), NULL, places, err);
    }
    if (st == OK)
        *out = p;
    else
        program_free(p);
    return st;
}

static struct selection selection_of(const struct config *c)
{
    const struct config_k1 *k = &c->k1;
    if (c->model.arch != ARCH_K1)
        return (struct selection){0};
    return (struct selection){.k = (int)(k->select == SELECT_ALL ? c->model.layers : k->k), .sum = k->score == SCORE_SUM,
                              .random = k->select == SELECT_RANDOM, .every = (int)k->every, .seed = (uint64_t)c->train.seed};
}

static struct optimizer_settings settings_of(const struct config *c, int64_t total_steps)
{
    const struct config_train *t = &c->train;
    const struct division v = division_of(c);
    return (struct optimizer_settings){
        .lr = (float)t->lr, .min_lr = (float)t->min_lr, .weight_decay = (float)t->weight_decay,
        .beta1 = (float)t->beta1, .beta2 = (float)t->beta2, .eps = (float)t->eps, .schedule = (int)t->schedule,
        .warmup = t->warmup < total_steps ? t->warmup : total_steps, .total_steps = total_steps,
        .decay_all = t->decay == DECAY_ALL, .max_norm = (float)t->clip, .accumulate = (int)t->accumulate,
        .select = selection_of(c),
        .ranks = {.ranks = v.ranks, .shards = (int)v.shards, .accumulate = (int)t->accumulate, .bucket_bytes = (double)c->dist.bucket_mb * 1e6,
                  .rank = v.rank, .shard_optimizer = v.ranks > 1 && c->dist.shard == SHARD_OPTIMIZER,
                  .alone = v.ranks == 1 && c->dist.transport == TRANSPORT_NCCL, .whole_layers = c->device == DEVICE_CUDA}};
}

/* Kernels need scratch memory and the host buffers, too: not all that is free is for the program. */
static const double SHARE_OF_FREE = 0.9;

double step_memory_limit(const struct config *c)
{
    const size_t available = train_available_bytes(c);
    if (c->optimize.memory)
        return (double)c->optimize.memory * 1e6;
    return available == SIZE_MAX ? 0 : SHARE_OF_FREE * (double)available;
}

/* A GPU reads and writes narrow values, and so does the reference; tuned kernels of a CPU round f32 while they pack it, or before where nobody
 * else reads it. */
static struct precision_goal precision_of(const struct config *c)
{
    const bool stores = c->device == DEVICE_CUDA || c->backend.kernels == KERNELS_REFERENCE;
    switch (c->optimize.precision) {
    case PRECISION_F16: return (struct precision_goal){.narrow = F16};
    case PRECISION_TF32: return (struct precision_goal){.round = ROUND_TF32};
    case PRECISION_BF16: return stores ? (struct precision_goal){.narrow = BF16} : (struct precision_goal){.round = ROUND_BF16, .attention = cpu_bf16_way() == BF16_AMX};
    case PRECISION_F32: break;
    }
    return (struct precision_goal){.round = ROUND_NO};
}

/* Nodes of a tree that are small enough to be done together.
 *
 * On a GPU: those whose ops do not fill it. A product makes tiles of 128 x 64 numbers, a block each, and a GPU of today has 132 multiprocessors
 * for them; ops with more to do run side by side as they are, and were slower level by level (H200: with 524 k numbers a step took 0.70 ms
 * instead of 0.89, with 4.2 M 2.58 to 2.67 instead of 2.49 to 2.54).
 *
 * On a CPU: those of which a thread has so little that meeting the others takes about as long. Two threads of a Neoverse took 1.08 ms instead of
 * 1.33 with 2 k numbers, 3.01 instead of 3.26 with 8 k, the same with 32 k; of an x86 with 524 k 3 % and more longer, and 8 threads the same.
 * One thread meets nobody, and ranks, whose programs must be the same, may have different numbers of them.
 *
 * Who asks for the pass by its own key gets it everywhere. */
enum { GPU_TILE = 128 * 64, GPU_BLOCKS = 132, CPU_PIECE = 4096 };

static int64_t group_most(const struct config *c)
{
    if (config_pass_is_named(c, pass_find("group-levels")))
        return 0;
    if (c->device == DEVICE_CUDA)
        return GPU_TILE * GPU_BLOCKS;
    if (division_of(c).ranks > 1)
        return -1;
    const int given = division_threads(c), threads = given ? given : system_cores(sched_getaffinity);
    return threads > 1 ? (int64_t)CPU_PIECE * threads : -1;
}

/* A GPU runs ops side by side where memory lets it (src/ops/cuda/lanes.c). With so many ops between two values in one memory it is as free
 * as if all had their own, by the longest way through the steps of the configs; the plan grows by 4 to 16 % there (f32). */
enum { LINGER = 12 };

/* What runs in order, or what would not fit then, goes without. */
static void let_memory_linger(struct program *p, const struct config *c)
{
    p->linger = c->device == DEVICE_CUDA && p->fewer_meetings ? LINGER : 0;
    if (p->linger && p->memory_limit > 0 && pass_planned_bytes(p) > p->memory_limit)
        p->linger = 0;
}

/* Its values are to stay within `limit` bytes. */
static enum status program_within(struct program **out, const struct config *c, int64_t total_steps, double limit, const struct program *like, int *places,
                                  struct error *err)
{
    const struct division v = division_of(c);
    const struct model_options options = {.batch = c->model.rows ? c->model.rows : v.batch, .loss = true, .dropout = true,
                                          .seed = (uint64_t)c->train.seed, .first_sample = v.by_sample ? v.rank * v.batch : 0,
                                          .packed = c->data.pack == PACK_ON ? v.batch : 0};
    const struct optimizer_settings settings = settings_of(c, total_steps);
    struct program *p = NULL;
    if (places)
        memset(places, 0, PASSES_MAX * sizeof *places);
    enum status st = forward_program(&p, c, options, places, err);
    if (st == OK)
        st = pass_training_step(p, &settings, err);
    if (st == OK) {
        p->memory_limit = limit;
        p->precision = precision_of(c);
        p->precision.like = like;
        p->group_most = group_most(c);
        p->in_buckets = c->device == DEVICE_CUDA;
    }
    if (st == OK)
        st = pass_optimize(p, STAGE_STEP, config_pass_set(c), NULL, places, err);
    if (st == OK)
        let_memory_linger(p, c);
    if (p)
        p->precision.like = NULL;
    setup_done();
    if (st == OK)
        *out = p;
    else
        program_free(p);
    return st;
}

/* What kernels work in; 0: not known. */
static double scratch_bytes(const struct program *p, struct backend *b)
{
    struct exec_memory m;
    struct error ignored;                   /* whoever binds the program will say it */
    return exec_plan(&m, p, b, &ignored) == OK ? (double)m.scratch : 0;
}

/* Passes know of values alone, and scratch hangs on the kernels of what they made: where both together are too much, the step is made again
 * for a limit that leaves room for it. Scratch of the new one may be another, so that may take a second time. */
enum { TIMES_MOST = 3 };

enum status step_program_for(struct program **out, const struct config *c, int64_t total_steps, const struct step_for *f, int *places,
                             struct error *err)
{
    const double most = step_memory_limit(c);
    double limit = most;
    for (int times = 1;; times++) {
        const enum status st = program_within(out, c, total_steps, limit, f->like, places, err);
        if (st != OK || !f->backend || !c->optimize.memory || times == TIMES_MOST)
            return st;
        const double values = pass_planned_bytes(*out), scratch = scratch_bytes(*out, f->backend);
        if (values > limit || values + scratch <= most)
            return OK;                      /* it can be no smaller, or need not */
        limit = scratch < most ? most - scratch : 1;
        program_free(*out);
        *out = NULL;                        /* making it again may fail, or be stopped */
    }
}

enum status train_step_program(struct program **out, const struct config *c, int64_t total_steps, int *places,
                               struct error *err)
{
    struct backend *b = NULL;
    struct error ignored;                   /* a step of a device that is not here can be looked at, too */
    if (c->optimize.memory && train_open_backend(&b, c, &ignored) != OK)
        b = NULL;
    const enum status st = step_program_for(out, c, total_steps, &(struct step_for){.backend = b}, places, err);
    if (b)
        b->free(b);
    return st;
}

enum status train_rank_program(struct program **out, const struct config *c, int ranks, struct error *err)
{
    struct comm nobody = {.size = ranks};               /* only its size is looked at */
    struct config one = *c;
    one.dist.comm = ranks > 1 ? &nobody : NULL;
    one.dist.shards = 0;
    one.train.batch_size *= ranks;
    return train_step_program(out, &one, c->train.steps, NULL, err);
}

enum status evaluation_program(struct program **out, const struct config *c, struct error *err)
{
    const pass_set precision = config_pass_set(c) & (pass_set)1 << pass_find("mixed-precision");
    struct program *p = NULL;
    enum status st = forward_program(&p, c, (struct model_options){.batch = c->eval.batch_size, .loss = true}, NULL, err);
    if (st == OK) {
        p->precision = precision_of(c);
        st = pass_optimize(p, STAGE_STEP, precision, NULL, NULL, err);
    }
    if (st == OK)
        *out = p;
    else
        program_free(p);
    return st;
}

enum status generation_program(struct program **out, const struct config *c, struct model_options options, int64_t length, struct error *err)
{
    struct config of = *c;
    of.model.length = length;
    return forward_program(out, &of, options, NULL, err);
}

static enum status shorter_evaluation(struct program **out, const struct config *c, void *context, struct error *err)
{
    (void)context;
    return evaluation_program(out, c, err);
}

enum status evaluation_lengths(struct lengths *l, const struct config *c, const struct dataset *d, struct backend *b, struct exec *longest,
                               struct error *err)
{
    const struct lengths_maker make = {c, b, shorter_evaluation, NULL};
    return lengths_open(l, d, &make, longest, err);
}

static void print_program(const struct program *p, const int *places, FILE *to)
{
    struct memory_plan plan;
    char text[PASSES_TEXT_MAX];
    program_print(p, to);
    fprintf(to, "passes: %s\n", train_passes_text(places, text));
    pass_memory_plan(p, &plan);
    fprintf(to, "workspace: %.3f MB planned, %.3f MB without the plan\n", (double)plan.workspace_bytes / 1e6,
            (double)plan.naive_bytes / 1e6);
    memory_plan_release(&plan);
}

enum status train_print_program(const struct config *c, FILE *to, struct error *err)
{
    struct config known = *c;
    struct dataset *d = NULL;
    struct program *p = NULL;
    struct step_counts steps = {.total = c->train.steps * config_stages(c)};
    int places[PASSES_MAX] = {0};
    enum status st = OK;
    if (!c->model.vocab || c->train.epochs)
        st = dataset_open(&d, c, err);
    if (st == OK && !c->model.vocab)
        known.model.vocab = dataset_vocab(d);
    if (st == OK && c->train.epochs)
        st = train_count_steps(&steps, &c->train, dataset_samples(d, SPLIT_TRAIN), err);
    if (st == OK)
        st = train_step_program(&p, &known, steps.total, places, err);
    if (st == OK)
        print_program(p, places, to);
    program_free(p);
    dataset_free(d);
    return st;
}
