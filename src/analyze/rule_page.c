/* The reference of all rules as Markdown; docs/rules.md is its output. */
#include <stdio.h>

#include "analyze/detect.h"

static void print_rule(const struct rule_text *t, FILE *to)
{
    fprintf(to, "\n## %s\n%s Effort: %s.\n\n", t->id, t->summary, effort_name(t->effort));
    fprintf(to, "- **Recognised.** %s\n- **Why it costs.** %s\n- **In hone.** %s\n- **In PyTorch.**\n\n", t->recognised,
            t->costs, t->fix_hone);
    fprintf(to, "```python\n%s\n```\n", t->fix_pytorch);
}

void rule_texts_print(FILE *to)
{
    fputs("# Rules\n\n"
          "Faults that cost a training step time, memory or safety. `hone profile` reports those that are recognised\n"
          "\"in a program\", `hone analyze` those \"in a trace\" of the PyTorch profiler.\n"
          "A finding names the rule, where it holds, the share of the step it takes part in (at least what it wins), and the expected speed-up\n"
          "with an interval. Severity follows from the time that would be won: critical from 50 % of the step, high\n"
          "from 20 %, medium from 5 %, low below; a fault that is there and costs little is listed as low. `hone` writes\n"
          "this page from the table that `hone explain` shows.\n",
          to);
    for (const struct rule_text *t = rule_texts; t->id; t++)
        print_rule(t, to);
}
