/* libhone: trains and profiles transformers, and tells what bounds a PyTorch trace, from a program of your own. This header is all of it.
 *
 *     cc mine.c $(pkg-config --cflags --libs hone)            or CMake: find_package(hone), target_link_libraries(mine hone::hone)
 *
 * Every function that can fail returns a hone_status; what was wrong, where, and what would be right is then in hone_message(). Texts
 * that are handed out are the caller's and go back with hone_free. What a handle was made of may go before it.
 *
 * Numbers are read and written with a point ("train.lr=1e-3") whatever setlocale was told; callbacks run in the program's locale.
 *
 * The library prints nothing and does not end the process, but for one case: where not even lists and names find memory it calls what
 * hone_on_exhausted was given, or else abort(). (The memory of a model is another thing: HONE_CANNOT.) Of signals it hears SIGBUS alone, once
 * it reads a file of tokens, and hands on what is not of that file. The first run or profile sets OPENBLAS_* and HWLOC_* in the environment.
 *
 * Threads: a handle is for one thread at a time. Different handles may be used by different threads; calls that compute (hone_run_*,
 * hone_train, hone_evaluate, hone_profile) then wait for each other, since each takes all cores that its config says. Reading traces waits
 * for nobody. hone_on_notice and hone_on_exhausted are for the whole process, before other calls. A callback may call the library, but must not
 * free the handle that called it, nor leave by longjmp or an exception.
 *
 * What is here stays as it is while the number in the library's name (libhone.so.0) stays; functions may be added. */
#ifndef HONE_H
#define HONE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_API __attribute__((visibility("default")))

typedef enum hone_status {
    HONE_OK = 0,
    HONE_NO = 1,                /* the answer is no */
    HONE_BAD_INPUT = 2,         /* a wrong argument, config, file or trace */
    HONE_CANNOT = 3,            /* the machine cannot: no memory, no device, disk full */
} hone_status;

/* ---- what all of it shares ---- */

HONE_API const char *hone_version(void);                /* "0.1.0" */
/* What the last call of this thread that did not return HONE_OK said: one line. Good until the thread's next call of the library. */
HONE_API const char *hone_message(void);
HONE_API void hone_free(char *text);                    /* a text that the library handed out; NULL is fine */

/* What people should know although nothing failed; by any thread. NULL: nobody listens. */
typedef void hone_notice_fn(void *context, const char *text);
HONE_API void hone_on_notice(hone_notice_fn *tell, void *context);
/* Called by whatever thread finds no memory for bookkeeping; must not return. */
HONE_API void hone_on_exhausted(void (*end)(void));

/* ---- configs ---- */

typedef struct hone_config hone_config;

/* `path` is a YAML file or the name of a shipped config ("quickstart"); settings are as of --set: "train.lr=1e-3". docs/config.md has the
 * keys. */
HONE_API hone_status hone_config_open(hone_config **out, const char *path, const char *const *settings, int n_settings);
HONE_API hone_status hone_config_text(const hone_config *config, char **yaml);          /* all keys */
HONE_API void hone_config_free(hone_config *config);    /* NULL is fine */

/* ---- a run in memory ---- */

typedef struct hone_run hone_run;

/* After a step. */
typedef struct hone_step {
    int64_t step;               /* from 1 */
    double loss;                /* nats per token; of hone_train the newest that is known, NAN before */
    double gradient_norm;       /* before clipping; of hone_train NAN */
    double us;                  /* that the step took; of hone_train NAN */
} hone_step;
typedef int hone_step_fn(void *context, const hone_step *step);         /* not 0: no more steps */

/* Builds the programs of a config and opens its data; the weights are those of the config's seed, or of train.init. */
HONE_API hone_status hone_run_open(hone_run **out, const hone_config *config);
/* The program of a training step, op by op, with shapes, FLOPs and bytes. */
HONE_API hone_status hone_run_program(const hone_run *run, char **text);
/* Trains so many more steps, and fewer where on_step (may be NULL) says so. The schedule of the learning rate is that of the config's
 * train.steps. */
HONE_API hone_status hone_run_train(hone_run *run, int64_t steps, hone_step_fn *on_step, void *context);
HONE_API int64_t hone_run_steps(const hone_run *run);   /* done so far */
HONE_API double hone_run_loss(const hone_run *run);     /* of the newest step; NAN: there was none */
HONE_API double hone_run_bytes(const hone_run *run);    /* of memory that training takes, as planned */
/* The mean loss over eval.batches batches of the validation data; HONE_NO: there is none. */
HONE_API hone_status hone_run_evaluate(hone_run *run, double *loss);
HONE_API hone_status hone_run_restart(hone_run *run);   /* back to the first weights and the first batch; where it fails, it must be called again before other work */
HONE_API void hone_run_free(hone_run *run);             /* NULL is fine */

/* ---- a run in a folder, as `hone train` makes it ---- */

typedef struct hone_result {
    int64_t steps;
    double loss, val_loss;      /* val_loss NAN: there was no evaluation */
    double samples_per_s, tokens_per_s;
    int stopped;                /* by on_step: the run can be resumed */
    char checkpoint[1024];      /* the newest */
} hone_result;

/* Trains as the config says, with logs and checkpoints in `folder`; resume: goes on from the newest checkpoint there. on_step and result may
 * be NULL. */
HONE_API hone_status hone_train(const hone_config *config, const char *folder, int resume, hone_step_fn *on_step, void *context,
                                hone_result *result);

typedef struct hone_loss {
    double loss;                /* mean, nats per token */
    double entropy;             /* the best possible loss, where it is known; else NAN */
    double tokens, bytes;       /* that it is the mean of; bytes 0: tokens are no text */
} hone_loss;

/* The loss of a trained model on the validation part of its data, or of other data: settings such as "data.path=new.txt". `checkpoint` is the
 * folder of a run or of one of its checkpoints. */
HONE_API hone_status hone_evaluate(hone_loss *out, const char *checkpoint, const char *const *settings, int n_settings);

/* ---- where the time of a step goes ---- */

/* Measures so many steps. `folder` gets the report that `hone profile` writes, NULL: none; *json (NULL: not wanted) is its report.json,
 * which docs/report.md describes. */
HONE_API hone_status hone_profile(const hone_config *config, int steps, const char *folder, char **json);

/* ---- what bounds a trace of the PyTorch profiler ---- */

typedef struct hone_analysis hone_analysis;

typedef struct hone_analyze_options {       /* 0: not known */
    double step_ms;             /* of a step without the profiler */
    double peak_tflops;         /* that the device's products reach at most */
    double peak_gbps;           /* of its memory */
} hone_analyze_options;

/* Paths are files (.json, .json.gz) or folders with the ranks of a job; several are the ranks of one job. options may be NULL. */
HONE_API hone_status hone_analyze(hone_analysis **out, const char *const *paths, int n_paths, const hone_analyze_options *options);
HONE_API hone_status hone_analysis_json(const hone_analysis *a, char **json);           /* report.json: docs/report.md */
HONE_API hone_status hone_analysis_markdown(const hone_analysis *a, char **text);
HONE_API hone_status hone_analysis_screen(const hone_analysis *a, int color, char **text);      /* as `hone analyze` prints it */
HONE_API hone_status hone_analysis_write(const hone_analysis *a, const char *folder);   /* report.html, report.md, report.json */
/* How many findings are at least that severe: "low", "medium", "high" or "critical". */
HONE_API hone_status hone_analysis_count(const hone_analysis *a, const char *severity, int *n);
HONE_API void hone_analysis_free(hone_analysis *a);     /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
