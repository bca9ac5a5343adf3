/* A verdict as JSON and as Markdown. */
#include <math.h>
#include <string.h>

#include "prove/prove_int.h"
#include "train/train.h"

const struct gate *verdict_gate(const struct verdict *v, const char *name)
{
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->gates[i].name, name))
            return &v->gates[i];
    return NULL;
}

const char *gate_outcome(const struct gate *g)
{
    return g->judged ? g->pass ? "pass" : "FAIL" : g->pass ? "not judged" : "no verdict";
}

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *count(int n) { return n ? json_integer(n) : json_null(); }

static json_t *gate_json(const struct gate *g)
{
    return json_pack("{s:s, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "gate", g->name, "pass", g->pass, "judged", g->judged,
                     "outcome", g->judged ? g->pass ? "pass" : "fail" : gate_outcome(g),
                     "a", number(g->a), "b", number(g->b), "limit", number(g->limit), "value", number(g->value), "low",
                     number(g->low), "high", number(g->high), "openings", count(g->openings), "turns", count(g->turns), "words", json_text(g->words));
}

json_t *verdict_gates_json(const struct verdict *v)
{
    json_t *gates = json_array();
    for (int i = 0; i < v->n; i++)
        json_array_append_new(gates, gate_json(&v->gates[i]));
    return gates;
}

json_t *verdict_json(const struct verdict *v)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "a", json_text(v->a), "b", json_text(v->b), "ops_a", number(v->of_a.ops),
                     "ops_b", number(v->of_b.ops), "gates", verdict_gates_json(v), "pass", v->pass, "delayed_share",
                     v->delayed_share < 0 ? json_null() : number(v->delayed_share), "warning", *v->warning ? json_text(v->warning) : json_null());
}

/* Text that stays text: what Markdown could read as its own is escaped. */
static void put(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>#|!~&", *text))
            putc('\\', to);
        putc((unsigned char)*text < ' ' ? ' ' : *text, to);
    }
}

static void put_row(FILE *to, const struct gate *g)
{
    const char *cells[] = {g->a_text, g->b_text, g->value_text, g->limit_text};
    fprintf(to, g->pass ? "| %s | %s |" : "| %s | **%s** |", g->name, gate_outcome(g));
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        putc(' ', to);
        put(to, cells[i]);
        fputs(" |", to);
    }
    putc('\n', to);
}

void verdict_markdown(const struct verdict *v, FILE *to)
{
    fputs("# ", to);
    put(to, v->b);
    fprintf(to, v->pass ? " may take the place of " : " may not take the place of ");
    put(to, v->a);
    if (*v->warning) {
        fputs("\n\n**Warning:** ", to);
        put(to, v->warning);
    }
    fputs("\n\n| gate | verdict | a | b | measured | limit |\n|---|---|---|---|---|---|\n", to);
    for (int i = 0; i < v->n; i++)
        put_row(to, &v->gates[i]);
    fputs("\na: ", to);
    put(to, v->a);
    fputs("  \nb: ", to);
    put(to, v->b);
    if (isfinite(v->of_a.ops))
        fprintf(to, "  \nops per step: %.0f in a, %.0f in b", v->of_a.ops, v->of_b.ops);
    fputs("\n\n", to);
    for (int i = 0; i < v->n; i++) {
        fprintf(to, "- %s: ", v->gates[i].name);
        put(to, v->gates[i].words);
        fputs(".\n", to);
    }
}
