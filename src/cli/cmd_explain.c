/* hone explain: what a rule means. */
#include <string.h>

#include "analyze/analyze.h"
#include "cli/cli.h"
#include "core/suggest.h"

static void print_list(void)
{
    for (const struct rule_text *r = rule_texts; r->id; r++)
        printf("%-20s %s\n", r->id, r->summary);
    puts("\n`hone explain RULE` says more; docs/rules.md has them all.");
}

/* A paragraph under its heading, in lines of LINE columns at most. */
static void print_part(const char *heading, const char *text)
{
    enum { LINE = 100 };
    int used = 0;
    printf("%s%s%s\n", style(stdout, "bold"), heading, style(stdout, "off"));
    for (const char *word = text; *word;) {
        const int n = (int)strcspn(word, " ");
        const bool fits = used + 1 + n <= LINE;
        printf("%s%.*s", used == 0 ? "" : fits ? " " : "\n", n, word);
        used = used && fits ? used + 1 + n : n;
        word += n + (word[n] == ' ');
    }
    puts("\n");
}

static void print_rule(const struct rule_text *r)
{
    const char *bold = style(stdout, "bold"), *off = style(stdout, "off");
    printf("%s%s%s: %s\n\n", bold, r->id, off, r->summary);
    print_part("how it is recognised", r->recognised);
    print_part("why it costs", r->costs);
    print_part("in hone", r->fix_hone);
    printf("%sin PyTorch%s\n%s\n\neffort: %s\n", bold, off, r->fix_pytorch, effort_name(r->effort));
}

static int unknown_rule(const char *id)
{
    const char *ids[64];
    int n = 0;
    struct error err;
    for (const struct rule_text *r = rule_texts; r->id && n < 64; r++)
        ids[n++] = r->id;
    const char *near = suggest_nearest(id, ids, n);
    error_set(&err, BAD_INPUT, "there is no rule '%s'%s%s%s `hone explain` lists them", id, near ? "; did you mean '" : ";",
              near ? near : "", near ? "'?" : "");
    return report_error(&err);
}

int cmd_explain(int argc, char **argv)
{
    struct text_list positional = {0};
    const struct option_def options[] = {{0}};
    const struct usage usage = {"explain", "[RULE]", "Explains a rule: what it means, how it is recognised, why it costs, and the fix in hone and in PyTorch.\n"
                                "Without a rule it lists them.", options, "  hone explain\n  hone explain constant-rebuilt\n", 0, 1};
    const enum parsed parsed = parse_options(&usage, argc, argv, &positional);
    if (parsed != PARSED_GO)
        return parsed == PARSED_HELP ? OK : BAD_INPUT;
    if (!positional.n) {
        print_list();
        return OK;
    }
    const struct rule_text *r = rule_text_find(positional.item[0]);
    if (!r)
        return unknown_rule(positional.item[0]);
    print_rule(r);
    return OK;
}
