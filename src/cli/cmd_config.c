/* hone config: the keys that a config may have, and a config with all of them. */
#include <unistd.h>

#include "cli/cli.h"

/* What is no config may be a key or a section that was misspelt. */
static int refuse(const char *name, struct error *err)
{
    const bool no_file = access(name, F_OK) != 0;
    const char *near = no_file ? config_nearest(name) : NULL;
    if (no_file && config_is_like_key(name))
        config_unknown(name, err);
    else if (near)
        error_add(err, "; or did you mean `hone config %s`?", near);
    return report_error(err);
}

static int print_config(const char *name, const struct text_list *sets)
{
    struct config c;
    struct error err;
    if (config_load(&c, name, sets->item, sets->n, &err) != OK)
        return refuse(name, &err);
    config_print(&c, stdout);
    return OK;
}

/* --set is for a config that is named; an example and a list of keys have what is always so. */
static enum status check(const char *name, const struct text_list *sets, bool example, struct error *err)
{
    if (example && name)
        return error_set(err, BAD_INPUT, "--example shows every key at its default, and not '%.200s'; leave one of them out", name);
    if (example && sets->n)
        return error_set(err, BAD_INPUT, "--example shows every key at its default; leave --set %.200s out, or name a config: hone config CONFIG --set %.200s", sets->item[0], sets->item[0]);
    if (sets->n && (!name || config_is_key(name)))
        return error_set(err, BAD_INPUT, "--set %.200s changes a config, and this lists keys; name a config: hone config CONFIG --set %.200s", sets->item[0], sets->item[0]);
    return OK;
}

int cmd_config(int argc, char **argv)
{
    struct text_list sets = {0}, positional = {0};
    bool example = false;
    const struct option_def options[] = {
        {"--set", "KEY=VALUE", OPTION_LIST, &sets, "override a key of the config that is shown; may be repeated"},
        {"--example", NULL, OPTION_FLAG, &example, "write a config with every key at its default, and what each is"},
        {0},
    };
    const struct usage usage = {
        "config", "[CONFIG|SECTION|KEY]", "Without an argument: every key of a config, its default, what is allowed and what it is. Of a section or a key: these.\n"
        "Of a config: the whole of it, with every key that the file leaves out.", options,
        "  hone config train\n  hone config train.lr\n  hone config quickstart --set model.dim=128\n  hone config --example >my.yaml\n", 0, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    struct error err;
    const char *name = positional.n ? positional.item[0] : NULL;
    if (check(name, &sets, example, &err) != OK)
        return report_error(&err);
    if (example)
        config_print_example(stdout);
    else if (!config_print_keys(name, stdout) && name)
        return print_config(name, &sets);
    return OK;
}
