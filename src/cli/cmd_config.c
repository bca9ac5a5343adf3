/* hone config: the keys that a config may have, and a config with all of them. */
#include "cli/cli.h"

static int print_config(const char *name, const struct text_list *sets)
{
    struct config c;
    struct error err;
    if (config_load(&c, name, sets->item, sets->n, &err) != OK)
        return report_error(&err);
    config_print(&c, stdout);
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
    if (example)
        config_print_example(stdout);
    else if (!config_print_keys(positional.n ? positional.item[0] : NULL, stdout))
        return print_config(positional.item[0], &sets);
    return OK;
}
