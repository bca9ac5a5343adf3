/* hone completion: scripts for shells, from the tables of commands and options. */
#include <string.h>

#include "analyze/analyze.h"
#include "cli/cli.h"

static void put_name(const char *name, void *context)
{
    (void)context;
    printf(" %s", name);
}

static void put_commands(void)
{
    for (const struct command *c = commands; c->name; c++)
        printf(" %s", c->name);
}

/* Words that stand for what a command takes, beside files: names of configs, rules, commands, shells. */
static void put_words(const struct command *c)
{
    if (strstr(c->arguments, "CONFIG") || strstr(c->arguments, "CASE") || !strcmp(c->arguments, "A B"))
        config_tell_names(put_name, NULL);
    else if (strstr(c->arguments, "RULE"))
        for (const struct rule_text *r = rule_texts; r->id; r++)
            printf(" %s", r->id);
    else if (!strcmp(c->name, "man"))
        put_commands();
    else if (strstr(c->arguments, "SHELL"))
        printf(" bash zsh fish");
    else if (!strcmp(c->name, "tokenizer"))
        printf(" train");
    else if (!strcmp(c->name, "launch")) {
        printf(" train profile tune doctor");
        config_tell_names(put_name, NULL);
    }
}

/* Of an option: "cpu|cuda" as words; nothing where any value may stand. */
static bool has_values(const struct option_def *o) { return o->argument && strchr(o->argument, '|'); }

static void put_values(const struct option_def *o)
{
    for (const char *c = o->argument; *c; c++)
        putchar(*c == '|' ? ' ' : *c);
}

/* ---- bash; zsh reads it, too ---- */

static void put_bash_options(const struct usage *u, void *context)
{
    (void)context;
    for (const struct option_def *o = u->options; o->name; o++)
        printf(" %s", o->name);
}

static void put_bash_values(const struct usage *u, void *context)
{
    (void)context;
    for (const struct option_def *o = u->options; o->name; o++)
        if (has_values(o)) {
            printf("        [ \"$prev\" = %s ] && values='", o->name);
            put_values(o);
            puts("'");
        }
}

static void put_bash_command(const struct command *c)
{
    printf("    %s) options='--help", c->name);
    command_usage(c, put_bash_options, NULL);
    printf("' words='");
    put_words(c);
    puts("'");
    command_usage(c, put_bash_values, NULL);
    puts("        ;;");
}

static void put_bash(void)
{
    puts("# Completion of hone for bash: eval \"$(hone completion bash)\"\n_hone() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options= words= values= IFS=$' \\t\\n'\n    COMPREPLY=()");
    printf("    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    put_commands();
    puts(" help --help --version' -- \"$cur\"))\n        return\n    fi");
    printf("    if [ \"$prev\" = --set ] || [ \"$prev\" = --vary ]; then\n        compopt -o nospace 2>/dev/null\n        COMPREPLY=($(compgen -S = -W '");
    config_tell_keys(put_name, NULL);
    puts("' -- \"$cur\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in");
    for (const struct command *c = commands; c->name; c++)
        put_bash_command(c);
    printf("    help) words='");
    put_commands();
    puts("' ;;\n    esac\n"
         "    if [ -n \"$values\" ]; then\n        COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n        return\n    fi\n"
         "    case $cur in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\")) ;;\n    esac\n}\n"
         "complete -o filenames -F _hone hone");
}

static void put_zsh(void)
{
    puts("#compdef hone\n# Completion of hone for zsh, in the words of its bash form: eval \"$(hone completion zsh)\"\n"
         "autoload -U +X bashcompinit && bashcompinit");
    put_bash();
}

/* ---- fish ---- */

/* Between apostrophes. */
static void put_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text == '\n' ? ' ' : *text);
    }
    putchar('\'');
}

static void put_fish_options(const struct usage *u, void *context)
{
    (void)context;
    for (const struct option_def *o = u->options; o->name; o++) {
        if (strncmp(o->name, "--", 2)) {
            printf("complete -c hone -n '__fish_seen_subcommand_from %s' -s %s", u->command, o->name + 1);
        } else
            printf("complete -c hone -n '__fish_seen_subcommand_from %s' -l %s", u->command, o->name + 2);
        printf("%s", o->argument && o->kind != OPTION_MAYBE ? " -r" : "");
        if (has_values(o)) {
            printf(" -f -a '");
            put_values(o);
            putchar('\'');
        }
        printf(" -d ");
        put_quoted(o->help);
        putchar('\n');
    }
}

static void put_fish(void)
{
    puts("# Completion of hone for fish: hone completion fish | source");
    for (const struct command *c = commands; c->name; c++) {
        printf("complete -c hone -n __fish_use_subcommand -a %s -d ", c->name);
        put_quoted(c->summary);
        putchar('\n');
        command_usage(c, put_fish_options, NULL);
        printf("complete -c hone -n '__fish_seen_subcommand_from %s' -a '", c->name);
        put_words(c);
        puts("'");
    }
}

int cmd_completion(int argc, char **argv)
{
    static const struct { const char *name; void (*put)(void); } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    struct text_list positional = {0};
    const struct option_def options[] = {{0}};
    const struct usage usage = {
        "completion", "SHELL", "Writes a script that completes hone's commands, options, keys and names of configs in a shell: bash, zsh or fish.", options,
        "  eval \"$(hone completion bash)\"\n  hone completion fish >~/.config/fish/completions/hone.fish\n", 1, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(shells[i].name, positional.item[0])) {
            shells[i].put();
            return OK;
        }
    struct error err;
    error_set(&err, BAD_INPUT, "there is no completion for '%s'; bash, zsh and fish have one", positional.item[0]);
    return report_error(&err);
}
