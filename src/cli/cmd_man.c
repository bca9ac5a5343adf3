/* hone man: pages of the manual, from the tables of commands and options. */
#include <string.h>

#include "cli/cli.h"

/* Text that troff takes for text: a line must not begin with a dot or an apostrophe, and a dash is no hyphen. */
static void put(const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static void put_title(const char *command)
{
    printf(".TH HONE%s", *command ? "\\-" : "");
    for (const char *c = command; *c; c++)
        putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    puts(" 1 \"\" \"hone " HONE_VERSION "\" \"User Commands\"");
}

static void put_options(const struct option_def *options)
{
    puts(".SH OPTIONS");
    for (const struct option_def *o = options; o->name; o++) {
        char words[OPTION_WORDS], help[OPTION_WORDS];
        const char *argument = option_argument(o, words);
        printf(".TP\n\\fB");
        put(o->name);
        printf("\\fR");
        if (argument)
            printf(o->kind == OPTION_MAYBE ? "[=\\fI%s\\fR]" : " \\fI%s\\fR", argument);
        putchar('\n');
        put(option_help(o, help));
        putchar('\n');
    }
    puts(".TP\n\\fB\\-\\-help\\fR\nshow the options");
}

static void put_exit_codes(void)
{
    puts(".SH EXIT STATUS\n0 done, 1 the answer is no, 2 wrong usage or input, 3 the machine cannot, 130 stopped before there was a result");
}

static void put_command(const struct usage *u, void *context)
{
    const struct command *c = context;
    put_title(u->command);
    printf(".SH NAME\nhone\\-%s \\- ", u->command);
    put(c->summary);
    printf("\n.SH SYNOPSIS\n\\fBhone %s\\fR \\fI", u->command);
    put(u->arguments);
    printf("\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n");
    put(u->summary);
    putchar('\n');
    put_options(u->options);
    printf(".SH EXAMPLES\n.nf\n");
    put(u->examples);
    printf(".fi\n");
    put_exit_codes();
    puts(".SH SEE ALSO\n\\fBhone\\fR(1)");
}

static void put_overview(void)
{
    put_title("");
    puts(".SH NAME\nhone \\- train transformers, and know where every microsecond of a step went");
    puts(".SH SYNOPSIS\n\\fBhone\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n"
         "hone trains transformers on CPUs and GPUs, measures where the time of a step goes, makes the changes that win and proves each. It reads\n"
         "traces of the PyTorch profiler, and gives the same diagnosis to programs that stay there.\n.SH COMMANDS");
    for (const struct command *c = commands; c->name; c++) {
        printf(".TP\n\\fBhone\\-%s\\fR(1)\n", c->name);
        put(c->summary);
        putchar('\n');
    }
    puts(".SH FILES\n.TP\n\\fI~/.cache/hone\\fR\nwhat is remembered of the machine: measured peaks, kernels that were chosen");
    put_exit_codes();
}

int cmd_man(int argc, char **argv)
{
    struct text_list positional = {0};
    const struct option_def options[] = {{0}};
    const struct usage usage = {"man", "[COMMAND]", "Writes a page of the manual, of a command or of hone as a whole, for man to show.", options,
                                "  hone man train | man -l -\n  hone man >hone.1\n", 0, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    if (!positional.n) {
        put_overview();
        return OK;
    }
    const struct command *c = command_find(positional.item[0]);
    if (!c) {
        struct error err;
        error_set(&err, BAD_INPUT, "'%s' is not a command; `hone --help` lists them", positional.item[0]);
        return report_error(&err);
    }
    struct command given = *c;
    command_usage(c, put_command, &given);
    return OK;
}
