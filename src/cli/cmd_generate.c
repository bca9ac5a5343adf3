/* hone generate */
#include <signal.h>

#include <unistd.h>

#include "cli/cli.h"
#include "core/clean.h"
#include "train/train.h"

/* A file or a program gets the bytes as the model made them; a terminal what is safe to show. */
static void emit(void *context, const char *text, size_t length)
{
    struct text_stream *terminal = context;
    if (terminal)
        text_stream_put(terminal, text, length);
    else
        fwrite(text, 1, length, stdout);
    if (fflush(stdout))
        stop_requested = 1;         /* nobody reads on; main reports it */
}

int cmd_generate(int argc, char **argv)
{
    struct text_list positional = {0};
    const char *prompt = "", *device = NULL;
    int64_t tokens = 200, seed = 1;
    double temperature = 0.8;
    const struct option_def options[] = {
        {"--prompt", "TEXT", OPTION_TEXT, &prompt, "text to continue (token ids for models trained on .bin shards)"},
        {"--tokens", "N", OPTION_INT, &tokens, "how many tokens to add (default 200)"},
        {"--temperature", "X", OPTION_REAL, &temperature, "0 takes the most likely token each time (default 0.8)"},
        {"--seed", "N", OPTION_INT, &seed, "the same seed gives the same text (default 1)"},
        {"--device", "cpu|cuda", OPTION_TEXT, &device, "where to run (default: where it was trained)"},
        {0},
    };
    const struct usage usage = {
        "generate", "CHECKPOINT", "Continues a prompt. CHECKPOINT is the folder of a run or of one of its checkpoints.", options,
        "  hone generate runs/quickstart\n  hone generate runs/quickstart --prompt \"The \" --tokens 400 --temperature 0.5\n", 1, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    if (tokens < 1 || temperature < 0) {
        error_set(&err, BAD_INPUT, tokens < 1 ? "--tokens must be at least 1" : "--temperature must not be negative");
        return report_error(&err);
    }
    install_stop_handler();
    signal(SIGPIPE, SIG_DFL);           /* text that nobody reads need not be made */
    struct text_stream terminal = {.to = stdout};
    const struct generate_options o = {.prompt = prompt, .device = device, .tokens = tokens, .temperature = temperature,
                                       .seed = (uint64_t)seed, .stop = &stop_requested};
    const enum status st = generate_run(positional.item[0], &o, emit, isatty(STDOUT_FILENO) ? &terminal : NULL, &err);
    text_stream_end(&terminal);
    if (st != OK)
        return report_error(&err);
    putchar('\n');
    return OK;
}
