/* Options by table: parsing, help, and messages for what is wrong. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/suggest.h"
#include "dist/dist.h"

volatile sig_atomic_t stop_requested;

static volatile sig_atomic_t leaves_at_once;
static bool on_terminal;

/* Whoever waits for this, a shell in a loop say, ends it only where the process died of the signal. Signal handlers may not use stdio. */
static void leave(int number)
{
    sigset_t one;
    static const char said[] = "\nhone: stopped before there was a result\n";
    const size_t skipped = on_terminal ? 0 : 1;         /* the line that a bar, or ^C, stands on */
    if (write(STDERR_FILENO, said + skipped, sizeof said - 1 - skipped) < 0)
        _exit(STOPPED_CODE);                            /* nobody to tell */
    if (number == SIGINT) {
        sigemptyset(&one);
        sigaddset(&one, number);
        signal(number, SIG_DFL);
        raise(number);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
    _exit(STOPPED_CODE);
}

static void on_early_stop(int number) { leave(number); }

static void on_stop(int number)
{
    if (leaves_at_once && number != SIGHUP)
        leave(number);
    stop_requested = 1;
    if (number != SIGHUP)
        signal(number, SIG_DFL);
}

/* A process that was started to outlive its terminal (nohup) ignores SIGHUP, and goes on ignoring it. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void stop_at_once(bool on) { leaves_at_once = on; }

void install_early_stop_handler(void)
{
    const struct sigaction act = {.sa_handler = on_early_stop};
    on_terminal = isatty(STDERR_FILENO);
    if (!is_ignored(SIGINT))
        sigaction(SIGINT, &act, NULL);
}

void install_stop_handler(void)
{
    const struct sigaction act = {.sa_handler = on_stop, .sa_flags = SA_RESTART};   /* no half-written output */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (!is_ignored(SIGHUP))
        sigaction(SIGHUP, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int report_error(const struct error *err)
{
    fprintf(stderr, "%shone:%s %s\n", style(stderr, "red"), style(stderr, "off"), shown(err->text));
    return exit_code(err);
}

int exit_code(const struct error *err) { return err->stopped ? STOPPED_CODE : (int)err->status; }

/* ---- what an option is ---- */

const char *const device_words[] = {"cpu", "cuda", NULL};

const char *const *option_words(const struct option_def *o)
{
    const struct picked *c = o->target;
    return o->kind == OPTION_WORD || o->kind == OPTION_OPEN ? c->words : NULL;
}

/* "a, b or c" */
static void join(const char *const *words, const char *between, const char *last, char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (const char *const *w = words; *w && n < size; w++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", w == words ? "" : w[1] ? between : last, *w);
}

const char *option_argument(const struct option_def *o, char out[OPTION_WORDS])
{
    if (o->argument || !option_words(o))
        return o->argument;
    join(option_words(o), "|", "|", out, OPTION_WORDS);
    return out;
}

const char *option_help(const struct option_def *o, char out[OPTION_WORDS])
{
    const int n = snprintf(out, OPTION_WORDS, "%s", o->help);
    if (o->argument && option_words(o) && n < OPTION_WORDS - 2) {
        strcpy(out + n, ": ");
        join(option_words(o), ", ", " or ", out + n + 2, OPTION_WORDS - (size_t)n - 2);
    }
    return out;
}

/* "--steps N", "--live[=PORT]", "--json" */
static const char *option_form(const struct option_def *o, char out[64])
{
    char words[OPTION_WORDS];
    const bool maybe = o->kind == OPTION_MAYBE;
    const char *argument = option_argument(o, words);
    snprintf(out, 64, "%s%s%.40s%s", o->name, maybe ? "[=" : argument ? " " : "", argument ? argument : "", maybe ? "]" : "");
    return out;
}

/* Columns of the longest option. */
static int options_width(const struct usage *u)
{
    int width = 20;
    for (const struct option_def *o = u->options; o->name; o++) {
        char left[64];
        const int length = (int)strlen(option_form(o, left));
        width = length > width ? length : width;
    }
    return width;
}

static void print_usage(const struct usage *u, FILE *to)
{
    const int width = options_width(u);
    fprintf(to, "usage: hone %s %s [OPTIONS]\n\n%s\n\noptions:\n", u->command, u->arguments, u->summary);
    for (const struct option_def *o = u->options; o->name; o++) {
        char left[64], right[OPTION_WORDS];
        fprintf(to, "  %-*s %s\n", width, option_form(o, left), option_help(o, right));
    }
    fprintf(to, "  %-*s %s\n\nexamples:\n%s", width, "--help", "show this", u->examples);
}

static usage_fn *asked;
static void *asked_context;

void command_usage(const struct command *c, usage_fn *tell, void *context)
{
    char name[32], help[] = "--help", *argv[] = {name, help, NULL};
    snprintf(name, sizeof name, "%s", c->name);
    asked = tell;
    asked_context = context;
    c->run(2, argv);
    asked = NULL;
}

static void show_usage(const struct usage *u)
{
    if (asked)
        asked(u, asked_context);
    else
        print_usage(u, stdout);
}

/* Ranks are started with the same words: the first of them says what is wrong with these. */
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
    va_list args;
    if (dist_start_read().rank != 0)
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

static enum parsed bad(const struct usage *u, const char *what, const char *subject)
{
    complain("hone %s: %s '%s'; `hone %s --help` shows the options\n", u->command, what, shown(subject), u->command);
    return PARSED_BAD;
}

static enum parsed unknown_option(const struct usage *u, const char *name)
{
    const char *words[32];
    int n = 0;
    for (const struct option_def *o = u->options; o->name && n < 32; o++)
        words[n++] = o->name;
    const char *near = suggest_nearest(name, words, n);
    if (!near)
        return bad(u, "there is no option", name);
    complain("hone %s: there is no option '%s'; did you mean '%s'?\n", u->command, shown(name), near);
    return PARSED_BAD;
}

static enum parsed bad_value(const struct usage *u, const struct option_def *o, const char *wanted, const char *value)
{
    complain("hone %s: %s takes %s, not '%s'; `hone %s --help` shows the options\n", u->command, o->name, wanted, shown(value), u->command);
    return PARSED_BAD;
}

static enum parsed bad_word(const struct usage *u, const struct option_def *o, const char *value)
{
    const char *const *words = option_words(o);
    char list[OPTION_WORDS];
    int n = 0;
    while (words[n])
        n++;
    const char *near = suggest_nearest(value, words, n);
    join(words, ", ", " or ", list, sizeof list);
    complain("hone %s: %s is '%s'; choose %s%s%s%s\n", u->command, o->name, shown(value), list, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return PARSED_BAD;
}

static bool parse_word(const char *text, struct picked *out)
{
    out->text = text;
    out->at = 0;
    while (out->words[out->at] && strcmp(out->words[out->at], text))
        out->at++;
    out->at = out->words[out->at] ? out->at : -1;
    return out->at >= 0;
}

static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text && !*end && !errno;
}

static bool parse_real(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text && !*end && isfinite(*out);
}

static enum parsed store(const struct usage *u, const struct option_def *o, const char *value)
{
    struct text_list *list = o->target;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->target = true;
        return PARSED_GO;
    case OPTION_TEXT:
    case OPTION_MAYBE:
        *(const char **)o->target = value;
        return PARSED_GO;
    case OPTION_INT:
        return parse_int(value, o->target) ? PARSED_GO : bad_value(u, o, "a whole number", value);
    case OPTION_REAL:
        return parse_real(value, o->target) ? PARSED_GO : bad_value(u, o, "a number", value);
    case OPTION_WORD:
    case OPTION_OPEN:
        return parse_word(value, o->target) || o->kind == OPTION_OPEN ? PARSED_GO : bad_word(u, o, value);
    case OPTION_LIST:
        if (list->n == MAX_LIST)
            return bad(u, "too many of this option, at", value);
        list->item[list->n++] = value;
        return PARSED_GO;
    }
    return PARSED_BAD;
}

/* Takes "--name value", "--name=value" and "--flag"; moves *i past what it used. */
static enum parsed take_option(const struct usage *u, int argc, char **argv, int *i)
{
    const char *text = argv[*i], *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : strlen(text);
    for (const struct option_def *o = u->options; o->name; o++) {
        if (strlen(o->name) != length || strncmp(o->name, text, length))
            continue;
        if (o->kind == OPTION_FLAG)
            return equals ? bad(u, "this option takes no value:", text) : store(u, o, NULL);
        if (equals || o->kind == OPTION_MAYBE)
            return store(u, o, equals ? equals + 1 : "");
        if (*i + 1 >= argc)
            return bad(u, "a value is missing after", text);
        return store(u, o, argv[++*i]);
    }
    return unknown_option(u, text);
}

enum parsed parse_options(const struct usage *u, int argc, char **argv, struct text_list *positional)
{
    bool only_positional = false;
    for (int i = 1; i < argc; i++) {
        if (!only_positional && !strcmp(argv[i], "--")) {
            only_positional = true;
        } else if (!only_positional && (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))) {
            show_usage(u);
            return PARSED_HELP;
        } else if (!only_positional && argv[i][0] == '-' && argv[i][1]) {
            if (take_option(u, argc, argv, &i) != PARSED_GO)
                return PARSED_BAD;
        } else if (positional->n == u->max_positional) {
            return bad(u, "one argument too many:", argv[i]);
        } else {
            positional->item[positional->n++] = argv[i];
        }
    }
    if (positional->n < u->min_positional) {
        const char *rest = strstr(u->arguments, " [");          /* what may be left out */
        complain("hone %s: %.*s is missing; `hone %s --help` shows examples\n", u->command,
                 (int)(rest ? (size_t)(rest - u->arguments) : strlen(u->arguments)), u->arguments, u->command);
        return PARSED_BAD;
    }
    return PARSED_GO;
}
