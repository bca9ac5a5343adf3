/* What the files of a training run share. */
#ifndef HONE_TRAIN_TRAIN_INT_H
#define HONE_TRAIN_TRAIN_INT_H

#include "data/data.h"
#include "model/model.h"
#include "train/ranks.h"
#include "train/record.h"
#include "train/checkpoint.h"
#include "train/train.h"

/* Executors for batches of different lengths (lengths.c), and how another one is made: c->model.length says for which length. */
struct lengths {
    int n;
    int64_t *seq;                   /* (n) those below model.seq, ascending */
    struct exec **exec;             /* (n) */
    struct exec *longest;           /* for all others; not freed with these */
};
struct lengths_maker {
    const struct config *config;
    struct backend *backend;
    enum status (*program)(struct program **out, const struct config *c, void *context, struct error *err);
    void *context;
};
enum status lengths_open(struct lengths *l, const struct dataset *d, const struct lengths_maker *make, struct exec *longest, struct error *err);
void lengths_close(struct lengths *l);
struct exec *lengths_find(const struct lengths *l, int64_t seq);
void lengths_measure(const struct lengths *l, bool on);

/* What batches held, to tell how much of the work was for padding. */
struct fill {
    double positions, filled;       /* rows times their length; tokens of samples among them */
};
static inline double fill_padding(const struct fill *f) { return f->positions > 0 ? 1 - f->filled / f->positions : 0; }

/* Programs and memory of one run. */
/* Moments that ranks divide, as rank 0 has collected them (slices.c). */
struct whole_moments {
    struct tensor *tensors;
    int n;
};

enum { CHANGED_MAX = 512 };
struct model_run {
    struct config config;           /* with the vocabulary resolved */
    struct backend *backend;
    struct dataset *dataset;
    struct exec *train, *eval;      /* eval may be NULL: no validation */
    struct lengths train_lengths, eval_lengths;
    struct exec *overflow;          /* for packed samples that need more rows than usual; NULL: there was none yet */
    struct exec *last;              /* that ran the last micro-batch: train, or one of a shorter length */
    struct fill fill;               /* of all batches of training so far */
    int64_t total_steps, steps_per_epoch;
    int64_t stage_steps;            /* of each of data.domains; 0: there are no stages */
    struct recorder *recorder;      /* NULL: steps are not recorded */
    int64_t upload_ns;              /* of the host, for batches of all steps so far */
    bool stopping;                  /* several ranks: one of them was asked to stop, as all have heard after a step or an evaluation */
    int places[PASSES_MAX];         /* what the passes changed in the training program */
    struct whole_moments moments;   /* rank 0: for the checkpoint that is being written */
    struct safetensors dealt;       /* rank 0: states that were read, until every rank has its slices */
    int64_t delay_ns;               /* of tests: how much longer this rank takes for a step */
    int64_t flip_step;              /* of tests: before this step a bit of a weight changes; 0: none does */
    int init_tensors;               /* parameters that train.init gave; 0: none */
    const char *init_title;         /* whose they are, and of which types */
    char init_types[64];
    json_t *said;                   /* see said_of */
    uint64_t hash[2];               /* of the data's splits, where `hashed`: model_run_hash */
    bool hashed[2];
    char changed[CHANGED_MAX];      /* keys of the config that a resumed run did not have so: "train.lr 0.001 -> 0.0005"; empty: none */
};

/* Where ranks divide the moments, all call these together: rank 0 then has them whole in r->moments; all have what rank 0 has read. */
enum { MOMENT_NAME = 320 };
bool moments_are_divided(const struct model_run *r);
enum status moments_collect(struct model_run *r, struct error *err);
enum status moments_deal(struct model_run *r, struct error *err);
void moments_release(struct whole_moments *m);
const char *moment_name(char which, const char *parameter, char out[MOMENT_NAME]);

enum status model_run_open(struct model_run *r, const struct config *c, struct dataset *dataset, struct error *err);
/* The same with a training program that `change` (NULL: nothing) has changed after all passes. */
typedef void program_change_fn(struct program *p, void *context);
enum status model_run_open_changed(struct model_run *r, const struct config *c, struct dataset *dataset,
                                   program_change_fn *change, void *context, struct error *err);
/* The weights of config.train.init, where it names a file or a folder (bring.c). */
enum status model_run_load_init(struct model_run *r, struct error *err);
void model_run_close(struct model_run *r);

/* The stage, and so the domain, that step `step` (counted from 1) belongs to; 0 for the moment before the first. Without stages: 0. */
int model_run_stage(const struct model_run *r, int64_t step);
int64_t model_run_epoch(const struct model_run *r, int64_t step);      /* from 1, of the data of its stage */

/* Copies a batch into the inputs of a program. */
void batch_upload(struct exec *e, const struct batch *b);
/* Programs for batches that are shorter than model.seq, once that of the longest is there (batches.c). */
enum status model_run_open_lengths(struct model_run *r, struct error *err);
/* Chooses the program for a batch, r->last, and puts the batch into it. */
enum status model_run_take(struct model_run *r, const struct batch *b, struct error *err);
/* Uploads a batch and runs forward to backward `accumulate` times, then the optimizer. Batches come from the loader.
 * When *stop (NULL: never) is set on the way, or a batch fails, the batches of this step are undone as if it had not
 * begun; *whole says whether the step was made. */
enum status model_run_step(struct model_run *r, struct loader *loader, const volatile sig_atomic_t *stop, bool *whole,
                           struct error *err);
/* Some steps in a row, and the wait for the device behind them (turn.c). */
struct turn_time {
    double step_s;                  /* one of them, with its share of that wait */
    double behind_s;                /* the wait */
    int64_t steps;                  /* that were taken: one at least */
};
int64_t cycle_steps(const struct config *c);                                    /* steps that take as long as the next so many */
int64_t model_run_turn_steps(const struct model_run *r, double step_s);       /* in a turn, where one takes that long; whole cycles */
/* When *stop (NULL: never) is set, the step that is under way is the last one. */
enum status model_run_turn(struct model_run *r, struct loader *l, int64_t steps, const volatile sig_atomic_t *stop, struct turn_time *out,
                           struct error *err);
/* The batches of a run from step `first` (counted from 0) on, as they are divided. */
enum status model_run_loader(struct loader **out, const struct model_run *r, int64_t first, int workers, int prefetch, struct error *err);
/* The same up to the gradients: no update. */
enum status model_run_backward(struct model_run *r, struct loader *loader, struct error *err);

/* What a step left behind. The last model_run_kept() steps can be asked for; 1 where the host reads in every step. */
struct step_metrics {
    float loss, norm, lr;
};
int model_run_kept(const struct model_run *r);
/* Fills out[0 .. n) with the last n steps, the newest last. */
void model_run_metrics(struct model_run *r, struct step_metrics *out, int n);
float model_run_host(struct model_run *r, const char *name);       /* of the last step: "host.loss", "host.norm", "host.lr" */

/* Mean loss over config.eval.batches batches of the validation data of every domain, (dataset_domains) of them; not all are known
 * when *stop is set on the way. Ranks divide the batches. */
enum status model_run_evaluate(struct model_run *r, const volatile sig_atomic_t *stop, double *losses, struct error *err);

/* The same of any forward program with a loss, and any data: `batches` batches from the first one on. */
struct evaluation {
    enum split split;
    int64_t batch_size, batches;
    const struct tokenizer *bytes;  /* counts the bytes of the targets; NULL: does not */
    int workers;
    const volatile sig_atomic_t *stop;
    struct dist *ranks;             /* that divide the batches; NULL: one */
    void (*progress)(void *context, int64_t batches);
    void *context;
};
struct evaluated {
    double loss, tokens;            /* mean over so many; none: 0 */
    bool stopped;                   /* one of the ranks was asked to */
    double bytes;                   /* of text that the tokens are; 0: not counted */
};
enum status evaluate_samples(const struct lengths *programs, const struct dataset *d, const struct evaluation *how, struct evaluated *out,
                             struct error *err);
int64_t evaluation_batches(const struct dataset *d, enum split split, int64_t batch_size, int64_t most);    /* of all samples */

/* The forward program after the passes that the configuration asks for; the vocabulary is known. `places` may be NULL. */
enum status forward_program(struct program **out, const struct config *c, struct model_options options, int *places,
                            struct error *err);
/* That of a batch of evaluation, in the types that training has. */
enum status evaluation_program(struct program **out, const struct config *c, struct error *err);
/* One of generation (struct model_options), for rows of `length` tokens, in f32. */
enum status generation_program(struct program **out, const struct config *c, struct model_options options, int64_t length, struct error *err);
enum status evaluation_lengths(struct lengths *l, const struct config *c, const struct dataset *d, struct backend *b, struct exec *longest,
                               struct error *err);
/* train_step_program, for who knows more of what it is for. */
struct step_for {
    struct backend *backend;                /* that it will run on; NULL: its kernels' scratch does not count against optimize.memory */
    const struct program *like;             /* another one of the same weights: the copies of them that it reads this one writes, too; NULL: there is none */
};
enum status step_program_for(struct program **out, const struct config *c, int64_t total_steps, const struct step_for *f, int *places,
                             struct error *err);
/* Bytes that a step should stay within: optimize.memory, or most of what is free; 0: unknown. */
double step_memory_limit(const struct config *c);
/* Programs that could not be bound to memory: where that was what lacked, the error gets what would make them fit, found with the
 * planner. Both return its status. */
enum status step_refuse(const struct config *c, int64_t total_steps, struct error *err);
enum status evaluation_refuse(const struct config *c, struct error *err);
int64_t interval_steps(struct interval every, int64_t steps_per_epoch);    /* 0: never */
struct evaluations model_run_evaluations(const struct model_run *r, struct interval every);      /* with this for eval.every */

/* The folder of a run. folder_check refuses, before anything is read or written, a folder in use without `resume`, or
 * nothing to resume. folder_lock makes the folder, holds it until *lock is closed, and looks again; then, with `anew`, it clears it. */
enum status folder_check(const struct train_options *o, struct error *err);
enum status folder_lock(int *lock, const struct train_options *o, const struct config *c, struct error *err);
/* Files that a run writes into its folder, beside its checkpoints, config.yaml the first; ends with NULL. */
extern const char *const train_files[];
/* left.c: refuses where a run in the folder is of another config, and, of one that has saved nothing, where its files are not known to be a run's. */
enum status left_check_same(const char *out, const struct config *c, struct error *err);
enum status left_check(const char *out, const struct config *c, struct error *err);
/* Takes these away; the folder is locked. A kill on the way leaves what left_check knows. */
enum status left_clear(const char *out, const struct config *c, struct error *err);
/* Refuses where a trace.json is that no recording of a run wrote, as the list of core/owned.h has it: a run that records writes its own. */
#define TRACE_OWNER "train"
enum status folder_check_trace(const char *out, struct error *err);
/* Of a split's tokens, and how many there are; of very many, of some samples. */
enum status data_hash(uint64_t *out, const struct dataset *d, enum split split, int64_t seq, struct error *err);
/* Of some samples of training: what manifests held once. */
enum status data_hash_of_some(uint64_t *out, const struct dataset *d, int64_t seq, struct error *err);
/* That of a split in a checkpoint's manifest; NULL: an older one has none. */
const char *data_hash_of(const json_t *manifest, enum split split);
bool data_hash_is(const char *text, uint64_t hash);
/* Whether a split is another than the checkpoint's run had; false where that is not known. */
enum status data_changed(bool *changed, const json_t *manifest, const struct dataset *d, enum split split, int64_t seq, struct error *err);
/* data_hash of a run's data, which is read for it once. */
enum status model_run_hash(uint64_t *out, struct model_run *r, enum split split, struct error *err);
enum status folder_write_config(const char *out, const struct config *c, struct error *err);

/* What of a run is in no tensor, and is carried on so that a run that was stopped logs what one that was not does. */
struct loss_sum {
    double loss;                    /* over the finite steps */
    int64_t steps, finite_steps;
};
struct carried {
    struct loss_sum since_log, since_epoch;
    int64_t skipped;
    bool owes;                      /* an evaluation was due at the step, and was not made before the run was stopped */
    struct forgetting forgetting;
    struct node_sums *nodes;        /* of the loop, filled where a run goes on */
};

/* The losses of the domains so far (forgetting.c). No domains where the run has no stages. */
void forgetting_init(struct forgetting *f, const struct model_run *r);
void forgetting_add(struct forgetting *f, const double *losses);                        /* a row */
enum status forgetting_write(const struct forgetting *f, const struct config *c, const char *out, struct error *err);
json_t *forgetting_rows(const struct forgetting *f);                                    /* NULL: no memory */
/* The rows of a manifest at `where`, which must be those of a run after `step`. */
enum status forgetting_restore(struct forgetting *f, const json_t *rows, int64_t step, const char *where, struct error *err);

/* Checkpoints of a run: every value that persists, what is carried, the config, the tokenizer and the size of the data. Both
 * return the checkpoint's folder in `path`. */
enum status state_save(struct model_run *r, const char *out, int64_t step, const struct carried *carried,
                       char path[CONFIG_PATH_MAX], struct error *err);
enum status state_resume(struct model_run *r, const char *out, int64_t *step, struct carried *carried,
                         char path[CONFIG_PATH_MAX], struct error *err);
json_t *tokenizer_json(const struct tokenizer *t);
/* The same back (trained.c); `where`, for messages, is the file that it stands in. */
enum status tokenizer_of_json(struct tokenizer *out, const json_t *j, const char *where, struct error *err);

/* What the config.json that a model came with said, and its weights do not tell: bos_token_id and eos_token_id, the ids that texts begin and
 * end with, and max_position_embeddings. It goes from checkpoint to checkpoint with the model (said.c). What is made is the caller's, and
 * NULL where nothing is known. */
enum status said_of(json_t **out, const json_t *from, int64_t vocab, struct error *err);        /* those of these keys that are ids below vocab, or a length */
/* And, for ids that are not known, what the tokenizer's names say; never NULL. */
enum status said_with_ends(json_t **out, const json_t *known, const struct tokenizer *t, int64_t vocab, struct error *err);
/* The special token that the first id of a key is; returns out, or NULL: none. */
const char *said_token(const json_t *said, const char *key, const struct tokenizer *t, char out[TOKEN_TEXT_MAX]);
json_t *domain_samples_json(const struct dataset *d);       /* training samples of each domain; NULL: no memory */
/* Refuses to continue a checkpoint whose model, data or order of samples is not the run's. */
enum status same_run(struct model_run *r, const struct checkpoint *ck, struct error *err);
/* Copies the tensors of a file into the values of one kind; names and shapes must match one to one. */
enum status state_load_tensors(struct exec *e, const struct safetensors *file, enum value_kind kind, const char *where,
                               struct error *err);

/* A model from a checkpoint, or from the newest of a run. The struct is zeroed before, and released also after a failure. `sets` change
 * the config that it was trained with; device NULL: as that says. */
struct trained {
    struct checkpoint checkpoint;
    struct config config;
    struct tokenizer tokenizer;
    struct backend *backend;
    struct exec *exec;              /* of a forward program, once one is built */
    struct lengths lengths;         /* the same for shorter batches */
};
enum status trained_load(struct trained *t, const char *checkpoint, const char *const *sets, int n_sets, const char *device,
                         struct error *err);
enum status trained_build(struct trained *t, struct program *p, struct error *err);     /* takes the program over, in any case */
enum status trained_refuse(const struct trained *t, enum status st, struct error *err);    /* adds what is free, where that lacked */
void trained_release(struct trained *t);

/* A file of one JSON object per line. Resuming (resumed_step -1: not) drops lines after the step that is resumed; `early`: also what was
 * logged at it. *evaluated: the last step of a line with a val_loss, -1: none. */
struct lines {
    FILE *file;
    char path[CONFIG_PATH_MAX + 32];
    off_t size;                         /* of the lines that are whole */
    bool failed, told;
    int code;                           /* errno of the first failure */
};
enum status lines_open(struct lines *l, const char *folder, const char *name, int64_t resumed_step, bool early, int64_t *evaluated,
                       struct error *err);
void lines_write(struct lines *l, json_t *line);            /* takes it over; NULL: there was no memory for it */
bool lines_lost(struct lines *l, struct error *why);        /* true once, behind the first line that could not be written */
enum status lines_close(struct lines *l, struct error *err);
json_t *json_number(double x);                              /* null where it is not finite */

/* Nodes of a tree that are selected (nodes.c): what of them is logged. */
struct node_sums {
    int n;                              /* nodes; 0: the program selects nothing */
    int64_t steps;                      /* since the last log */
    double *norm, *most;                /* per node: sum and largest of its scores in these steps */
    int64_t *known, *selected;          /* per node: steps with a score, and those in which it was updated */
    int32_t *newest;                    /* the nodes of the newest step, n_newest of them */
    int n_newest;
};
void node_sums_init(struct node_sums *s, const struct model_run *r);
void node_sums_release(struct node_sums *s);
void node_sums_reset(struct node_sums *s);                  /* a log was made */
void node_sums_add(struct node_sums *s, struct model_run *r, int steps);   /* the last `steps` steps; see model_run_kept */
json_t *node_sums_json(const struct node_sums *s);          /* NULL: no memory */
void node_sums_restore(struct node_sums *s, const json_t *j);
/* nodes.jsonl: a line per log, and the same for TensorBoard (NULL: not asked for). */
struct node_log;
enum status node_log_open(struct node_log **out, const struct model_run *r, const char *folder, int64_t resumed_step, bool early,
                          struct error *err);       /* NULL where there are none */
void node_log_write(struct node_log *l, struct model_run *r, const struct node_sums *s, const struct train_log *log,
                    struct tensorboard *board);
struct lines *node_log_lines(struct node_log *l);
enum status node_log_close(struct node_log *l, struct error *err);

/* metrics.jsonl: one JSON object per line. Resuming (resumed_step -1: not) drops lines after the step that is resumed,
 * and what is there already is not written twice. `early`: the run was stopped between two logs, so the loss of its last step
 * was logged early, and goes, too: the next log counts its steps. */
struct metrics;
enum status metrics_open(struct metrics **out, const char *folder, int64_t resumed_step, bool early, bool tensorboard,
                         struct error *err);
struct tensorboard *metrics_board(struct metrics *m);       /* NULL: none */
void metrics_log(struct metrics *m, const struct train_log *log);
struct lines *metrics_lines(struct metrics *m);
void metrics_epoch(struct metrics *m, const struct train_epoch *epoch);
/* Losses of all domains of the data; the one that is learned at this step counts as the run's. */
void metrics_eval(struct metrics *m, int64_t step, const struct dataset *d, int stage, const double *losses);
enum status metrics_close(struct metrics *m, struct error *err);    /* NULL is fine */

/* The config whose steps bench_run times: on random tokens, without evaluation. */
struct config bench_config(const struct config *c);
enum status bench_open_data(struct dataset **out, const struct config *c, struct error *err);      /* of such a config */

/* A run that goes on keeps the threads that it had (OUT/run.json), where the config leaves them open and the cores are there: bits hang on them. */
void train_resume_threads(struct config *c, const char *out, char words[THREADS_WORDS]);

/* Measures some steps op by op, in turns with steps that are not, and sums them up by part of the model. */
enum status components_measure(struct model_run *r, struct loader *l, const struct peaks *peaks, const volatile sig_atomic_t *stop,
                               struct bench_component *out, int *n, struct bench_result *result, struct error *err);

/* What the ranks took, from the steps that each of them measured; fills m->ranks. Of one rank nothing. */
enum status measure_ranks(struct measured *m, double sums_us, struct error *err);

/* The steps of a run that are recorded into a trace. */
struct recording {
    int64_t first, last;            /* 0: none */
    struct trace *trace;
    struct recorder *recorder;
};
/* Before step `step` (counted from 1): starts when it is the first. After it: writes OUT/trace.json when it was the last. */
void recording_before(struct recording *r, struct model_run *run, int64_t step);
enum status recording_after(struct recording *r, struct model_run *run, int64_t step, const char *out, struct error *err);
/* Writes what there is when the run ended early. */
enum status recording_finish(struct recording *r, struct model_run *run, const char *out, struct error *err);

#endif
