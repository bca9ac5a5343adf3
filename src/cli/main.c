/* hone: the table of commands and the help. */
#include <signal.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/arena.h"
#include "core/json_memory.h"
#include "core/notice.h"
#include "core/suggest.h"

const struct command commands[] = {
    {"train", "CONFIG", "train a model from one config file", cmd_train},
    {"launch", "-n N ...", "the same on several ranks of this machine, which train one model together", cmd_launch},
    {"generate", "CHECKPOINT", "continue a prompt with a trained model", cmd_generate},
    {"eval", "CHECKPOINT", "the loss of a trained model on its data, or on other data", cmd_eval},
    {"runs", "[DIR]", "the runs below a folder: state, losses, speed, and how their configs differ", cmd_runs},
    {"compare", "RUN...", "runs side by side on one page: curves, figures, speed, memory", cmd_compare},
    {"sweep", "CONFIG", "a run for every combination of values of some keys, in turn", cmd_sweep},
    {"profile", "CONFIG", "where every microsecond, FLOP and byte of a step went", cmd_profile},
    {"analyze", "TRACE...", "what bounds a step that the PyTorch profiler recorded, and the fix", cmd_analyze},
    {"watch", "COMMAND...", "the same for a PyTorch program that is started here, unchanged", cmd_watch},
    {"tune", "CONFIG", "make the changes that win, prove each, write the config that has them", cmd_tune},
    {"verify", "A B", "may config B take the place of A? gradients, losses, memory, speed", cmd_verify},
    {"forget", "CONFIG...", "train over several domains: what was learned against what was forgotten", cmd_forget},
    {"simulate", "CONFIG", "the step on many ranks, from the measured step of one", cmd_simulate},
    {"import", "MODEL", "a checkpoint of weights that others wrote: Hugging Face, nanoGPT, Meta", cmd_import},
    {"export", "CHECKPOINT", "its weights as Hugging Face's transformers or plain PyTorch read them", cmd_export},
    {"tokenize", "TEXT...", "shards of tokens from text, to train on", cmd_tokenize},
    {"tokenizer", "train TEXT", "a tokenizer of byte-level BPE from text", cmd_tokenizer},
    {"bench", "CASE...", "time whole training steps", cmd_bench},
    {"doctor", "[CONFIG]", "show the machine, measure its peaks, check a config", cmd_doctor},
    {"explain", "[RULE]", "what a finding means and how to mend it", cmd_explain},
    {"config", "[CONFIG]", "the keys of a config with their defaults, or a config with all of its keys", cmd_config},
    {"completion", "SHELL", "completion of commands and options for bash, zsh or fish", cmd_completion},
    {"man", "[COMMAND]", "a page of the manual, for man", cmd_man},
    {NULL, NULL, NULL, NULL},
};

const struct command *command_find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(name, c->name))
            return c;
    return NULL;
}

static void print_help(FILE *to)
{
    fputs("hone trains transformers and measures what it does.\n\nusage: hone COMMAND [OPTIONS]\n\ncommands:\n", to);
    for (const struct command *c = commands; c->name; c++)
        fprintf(to, "  %-10s %-11s %s\n", c->name, c->arguments, c->summary);
    fputs("\n`hone COMMAND --help` shows a command's options and examples.\n\nexamples:\n"
          "  hone train quickstart                      train the built-in example on the built-in corpus\n"
          "  hone generate runs/quickstart --tokens 200 print text from what was trained\n"
          "  hone eval runs/quickstart                  its loss, perplexity and bits per byte\n"
          "  hone runs                                  what became of all runs below runs/\n"
          "  hone profile quickstart                    what bounds a step, and what to do about it\n"
          "  hone analyze trace.json.gz                 the same for a trace of the PyTorch profiler\n"
          "  hone watch -- python train.py              the same for a program as it is\n"
          "  hone tune quickstart                       make the step faster, with proof\n"
          "  hone forget forget-tree5 forget-random5    does choosing nodes by gradient help against forgetting?\n"
          "  hone simulate quickstart --net 30,10       what up to 1024 ranks would make of it\n"
          "  hone bench lecture-gpt-b4 --threads 2      time a step\n"
          "  hone doctor quickstart                     is this machine and this config all right?\n"
          "  hone config --example >my.yaml             a config to begin with\n\n"
          "exit codes: 0 done, 1 the answer is no, 2 wrong usage or input, 3 the machine cannot,\n"
          "130 stopped before there was a result\n", to);
}

static int unknown_command(const char *name)
{
    const char *words[sizeof commands / sizeof *commands];
    int n = 0;
    for (const struct command *c = commands; c->name; c++)
        words[n++] = c->name;
    const char *near = suggest_nearest(name, words, n);
    fprintf(stderr, "hone: '%s' is not a command; ", shown(name));
    if (near)
        fprintf(stderr, "did you mean '%s'? ", near);
    fputs("`hone --help` lists them\n", stderr);
    return BAD_INPUT;
}

bool stream_was_closed[3];

/* A standard stream that is closed would give its number to the next file that is opened, and messages would go into
 * that file. Opened the wrong way round it stays as unusable as it was. */
static void hold_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if ((stream_was_closed[fd] = fcntl(fd, F_GETFD) < 0))
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);      /* takes the lowest free number: fd */
}

static void show_notice(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s%swarning:%s %s\n", stream_is_terminal(stderr) ? "\r\033[K" : "", style(stderr, "yellow"), style(stderr, "off"), shown(text));        /* a bar may stand there */
}

static int help_for(const char *name)
{
    char help[] = "--help", given[32], *argv[] = {given, help, NULL};
    const struct command *c = command_find(name);
    snprintf(given, sizeof given, "%s", name);
    return c ? c->run(2, argv) : unknown_command(name);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return BAD_INPUT;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        if (argc > 2)
            return help_for(argv[2]);
        print_help(stdout);
        return OK;
    }
    if (!strcmp(name, "--version")) {
        puts("hone " HONE_VERSION);
        return OK;
    }
    const struct command *c = command_find(name);
    if (!c)
        return unknown_command(name);
    show_choosing(NULL);
    notice_listen(show_notice, NULL);
    install_early_stop_handler();
    return c->run(argc - 1, argv + 1);
}

/* Any thread may come here, in the midst of anything: nothing is closed or flushed. */
static void end_without_memory(void)
{
    fputs("hone: out of memory for bookkeeping\n", stderr);
    _exit(CANNOT);
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    arena_on_exhausted(end_without_memory);
    json_memory_watch(NULL, end_without_memory);
    handle_aborts();
    signal(SIGXFSZ, SIG_IGN);           /* a file at its limit is an error like a full disk, and not the end */
    const int code = run(argc, argv);
    ranks_ended(code);                  /* also where it did not get as far as ranks: a wrong option */
    if (fflush(stdout) || ferror(stdout)) {             /* a full disk behind a redirection */
        fputs("hone: cannot write to the standard output\n", stderr);
        return code ? code : CANNOT;
    }
    return code;
}
