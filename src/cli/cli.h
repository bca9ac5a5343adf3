/* The command line: a table of commands, options by table, and the terminal. */
#ifndef HONE_CLI_CLI_H
#define HONE_CLI_CLI_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"
#include "core/error.h"
#include "core/peaks.h"
#include "report/folder.h"

struct command {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv);      /* argv[0] is the command's name; returns the exit code */
};

extern const struct command commands[];     /* ends with a NULL name */

int cmd_train(int argc, char **argv);
int cmd_launch(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_analyze(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_forget(int argc, char **argv);
int cmd_runs(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_man(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);
int cmd_tokenizer(int argc, char **argv);

/* ---- options ---- */

enum { MAX_LIST = 64 };
struct text_list {
    const char *item[MAX_LIST];
    int n;
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_INT, OPTION_REAL, OPTION_LIST,
                   OPTION_WORD,         /* one of some words, and nothing else */
                   OPTION_OPEN,         /* one of some words, or another text */
                   OPTION_MAYBE };      /* "--live" or "--live=8123"; without a value it is "" */

/* Of an option that takes words: help, manual, completion and errors name them. */
struct picked {
    const char *const *words;   /* up to NULL */
    const char *text;           /* what was given; NULL: nothing */
    int at;                     /* which of the words it is; -1: none of them */
};

struct option_def {
    const char *name;           /* "--steps" */
    const char *argument;       /* "N", also what shells complete: DIR, FILE, KEY...; NULL for flags, and where words stand for themselves */
    enum option_kind kind;
    void *target;               /* bool, const char *, int64_t, double, struct text_list, struct picked (twice) or const char * */
    const char *help;
};
/* "N" or "cpu|cuda"; NULL: it takes none. And what it is for, with the words that its argument stands for. */
enum { OPTION_WORDS = 256 };
const char *option_argument(const struct option_def *o, char out[OPTION_WORDS]);
const char *option_help(const struct option_def *o, char out[OPTION_WORDS]);
const char *const *option_words(const struct option_def *o);       /* NULL: it takes other things */

extern const char *const device_words[];

struct usage {
    const char *command, *arguments, *summary;
    const struct option_def *options;       /* ends with a NULL name */
    const char *examples;
    int min_positional, max_positional;
};

enum parsed { PARSED_GO, PARSED_HELP, PARSED_BAD };

/* Asks a command what its usage is, instead of having it printed: for manuals and completion. */
typedef void usage_fn(const struct usage *usage, void *context);
void command_usage(const struct command *c, usage_fn *tell, void *context);
const struct command *command_find(const char *name);   /* NULL: there is none */

/* Fills the options' targets and the positional arguments. --help prints the usage; a mistake is printed with what would
 * be right. */
enum parsed parse_options(const struct usage *usage, int argc, char **argv, struct text_list *positional);

/* Prints "hone: text" to stderr and returns its exit code: the error's status, or that of what was stopped. */
int report_error(const struct error *err);
int exit_code(const struct error *err);

/* Set by Ctrl-C, SIGTERM and a terminal that goes away (SIGHUP), once installed. A second Ctrl-C or SIGTERM ends the process
 * at once; SIGHUP comes more than once where a terminal closes, and does not. From then on a reader that leaves (`| head`)
 * ends the output and not the work. */
extern volatile sig_atomic_t stop_requested;
void install_stop_handler(void);
/* Before that: Ctrl-C ends the process with a line that says so. */
void install_early_stop_handler(void);
void stop_at_once(bool on);             /* the same again, while there is nothing to save and nobody asks whether to go on */
void handle_aborts(void);               /* aborts.c: of libraries without memory */
extern bool stream_was_closed[3];       /* main.c: 0 to 2, when hone was started; something that cannot be used stands there since */

/* ---- output ---- */

/* A document in lines, with an end of line; the caller frees it. Releases the document. NULL: no memory. */
char *json_lines(json_t *document);
typedef enum status document_writer(const json_t *document, FILE *to, struct error *err);
char *document_written(document_writer *write, const json_t *document);        /* NULL: there was no memory. The caller frees it */
/* The same to the standard output; main sees what the stream says. */
enum status print_document(json_t *document, int digits, struct error *err);
/* --print-program writes text, and --json promises one document and nothing else. */
enum status refuse_json_program(bool json, bool print, struct error *err);

/* A name, path or value that was given, read or made by others, safe to print: every such text passes here or through an
 * error. The result is good for the next fifteen calls. */
const char *shown(const char *text);
/* The same of a path in a command that is proposed: quoted where a shell would not take it as one word. Good for the next call. */
const char *shown_argument(const char *text);

/* ---- terminal ---- */

bool stream_is_terminal(FILE *f);
bool stream_has_color(FILE *f);                          /* a terminal, and no NO_COLOR that says something */
int terminal_columns(void);                             /* of the one behind stderr; 0: it does not say */
const char *style(FILE *f, const char *name);           /* "bold", "dim", "green", "yellow", "red", "off"; "" off a terminal */
void human_bytes(double bytes, char out[32]);           /* "12.3 MB" */
void human_count(double n, char out[32]);               /* "124 M" */
void human_rate(double per_s, int decimals, char out[32]);      /* "1086.6"; below 10 three digits, wherever they are: "0.0485" */
void human_time(double seconds, char out[32]);          /* "1:05", "2:03:04" */

struct progress {
    bool on;                    /* stderr is a terminal */
    double start, last_drawn;
    int64_t first, total, at;
    bool drawn;
    char text[128];
};
void progress_start(struct progress *p, int64_t first, int64_t total);
void progress_show(struct progress *p, int64_t at, const char *text);
/* For work that tells how many bytes of text are done (context: the bar, zero before). */
void progress_show_bytes(void *bar, int64_t bytes, int64_t total);
/* Another text for a while, at the same place; NULL: the bar's own again. */
void progress_note(struct progress *p, const char *text);
void progress_clear(struct progress *p);

void progress_line(struct progress *p, const char *text);       /* the text alone, where nobody knows how much is left */

/* Shows on the terminal that kernels are being timed, peaks measured or a run set up, whenever they are: as a note in this bar; NULL: as
 * a line of its own. From then on Ctrl-C is heard by who does it, too. */
void show_choosing(struct progress *within);

/* A table of losses, a row for each stage that has ended; nothing where the run has no domains. */
struct forgetting;
void print_forgetting(FILE *to, const struct forgetting *f, const struct config_names *domains);

/* Draws y over x as text, with a dashed line at `floor` (NAN: none). */
void plot_curve(FILE *to, const double *x, const double *y, int n, double floor, const char *floor_label);

/* ---- ranks.c ---- */

#define LAUNCH_RETRIES "HONE_LAUNCH_RETRIES" /* in the environment: the run is started again where it fails */
#define LAUNCH_FOLDER "HONE_LAUNCH"          /* in the environment: where ranks leave what they end with */

struct config;
struct dist;
/* The group of ranks that this process was started in (NULL: alone), with the config that it has. Otherwise the code that it ends with:
 * what was wrong was told. */
int ranks_open(struct dist **out, struct config *c, const char *path, const struct text_list *sets);
int ranks_join(struct dist **out);                                 /* the same for a command that needs no config */
int ranks_report(struct dist *d, const struct error *err);         /* as report_error, on the rank that tells people */
enum status ranks_check_alone(const char *command, struct error *err);     /* of a command that ranks do not share: several would each do all of it */
int ranks_refuse(const struct error *err);                         /* the same before there is a group: the first rank tells */
void ranks_close(struct dist *d, int code);                        /* code: what this process ends with */
void ranks_ended(int code);                                        /* tells `hone launch`, where that started it */

#endif
