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

/* What a value of an option may be, by what its argument is called. */
enum offer { OFFER_NOTHING, OFFER_WORDS, OFFER_KEYS, OFFER_SETTINGS, OFFER_FOLDERS, OFFER_FILES };

static enum offer offer_of(const struct option_def *o)
{
    static const struct { const char *argument; enum offer offer; } known[] = {
        {"DIR", OFFER_FOLDERS}, {"FILE", OFFER_FILES}, {"PATH", OFFER_FILES}, {"OTHER", OFFER_FILES}, {"KEY", OFFER_KEYS},
        {"KEY=VALUE", OFFER_SETTINGS}, {"KEY=A,B,C", OFFER_SETTINGS},
    };
    for (size_t i = 0; o->argument && i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].argument, o->argument))
            return known[i].offer;
    return option_words(o) ? OFFER_WORDS : OFFER_NOTHING;
}

static bool takes_next(const struct option_def *o) { return o->kind != OPTION_FLAG && o->kind != OPTION_MAYBE; }

static void put_values(const struct option_def *o)
{
    for (const char *const *w = option_words(o); w && *w; w++)
        printf("%s%s", w == option_words(o) ? "" : " ", *w);
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
    static const char *const take[] = {[OFFER_NOTHING] = "nothing", [OFFER_WORDS] = "words", [OFFER_KEYS] = "keys", [OFFER_SETTINGS] = "settings",
                                       [OFFER_FOLDERS] = "folders", [OFFER_FILES] = "files"};
    (void)context;
    for (const struct option_def *o = u->options; o->name; o++)
        if (takes_next(o)) {
            printf("        %s) take=%s values='", o->name, take[offer_of(o)]);
            put_values(o);
            puts("' ;;");
        }
}

static void put_bash_command(const struct command *c)
{
    printf("    %s) options='--help", c->name);
    command_usage(c, put_bash_options, NULL);
    printf("' words='");
    put_words(c);
    puts("'\n        case $prev in");
    command_usage(c, put_bash_values, NULL);
    puts("        esac ;;");
}

static void put_bash(void)
{
    puts("# Completion of hone for bash: eval \"$(hone completion bash)\"\n_hone() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options= words= values= take= IFS=$' \\t\\n'\n    COMPREPLY=()\n"
         "    if [ \"$cur\" = = ]; then cur=; elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi");
    printf("    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    put_commands();
    puts(" help --help --version' -- \"$cur\"))\n        return\n    fi");
    printf("    local keys='");
    config_tell_keys(put_name, NULL);
    puts("'\n    case ${COMP_WORDS[1]} in");
    for (const struct command *c = commands; c->name; c++)
        put_bash_command(c);
    printf("    help) words='");
    put_commands();
    puts("' ;;\n    esac\n"
         "    case $take:$cur in\n    nothing:*) ;;\n"
         "    words:*) COMPREPLY=($(compgen -W \"$values\" -- \"$cur\")) ;;\n"
         "    keys:*) COMPREPLY=($(compgen -W \"$values $keys\" -- \"$cur\")) ;;\n"
         "    settings:*) compopt -o nospace 2>/dev/null\n        COMPREPLY=($(compgen -S = -W \"$keys\" -- \"$cur\")) ;;\n"
         "    folders:*) COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n"
         "    files:*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
         "    :-*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
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

static void put_setting(const char *key, void *context)
{
    (void)context;
    printf(" %s=", key);
}

static void put_fish_values(const struct option_def *o)
{
    const enum offer offer = offer_of(o);
    if (offer == OFFER_FILES) {
        printf(" -r -F");
        return;
    }
    printf(offer == OFFER_NOTHING ? " -x" : " -x -a '");
    put_values(o);
    printf("%s", offer == OFFER_NOTHING ? "" : offer == OFFER_SETTINGS ? "(__hone_settings)'" : offer == OFFER_KEYS ? " (__hone_settings | string trim -c =)'"
                 : offer == OFFER_FOLDERS ? "(__fish_complete_directories)'" : "'");
}

static void put_fish_options(const struct usage *u, void *context)
{
    (void)context;
    for (const struct option_def *o = u->options; o->name; o++) {
        char help[OPTION_WORDS];
        if (strncmp(o->name, "--", 2)) {
            printf("complete -c hone -n '__fish_seen_subcommand_from %s' -s %s", u->command, o->name + 1);
        } else
            printf("complete -c hone -n '__fish_seen_subcommand_from %s' -l %s", u->command, o->name + 2);
        if (takes_next(o))
            put_fish_values(o);
        printf(" -d ");
        put_quoted(option_help(o, help));
        putchar('\n');
    }
}

static void put_fish(void)
{
    printf("# Completion of hone for fish: hone completion fish | source\nfunction __hone_settings\n    printf '%%s\\n'");
    config_tell_keys(put_setting, NULL);
    puts("\nend");
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
