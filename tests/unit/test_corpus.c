/* The built-in corpus: its text is what it says, its entropy is the true one, and every text has one derivation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena.h"
#include "data/corpus.h"

enum { DOMAINS = 3, UNITS_PARSED = 1500, UNIT_MAX = 65536, UNITS_MEASURED = 40000 };

/* ---- a parser that counts derivations ---- */

/* What a symbol can derive from one place: the texts that end at `end`, how many ways, with what probability in all. */
struct reach {
    size_t end;
    double ways, p;
};

struct reaches {
    struct reach *at;
    int n;
    bool known, open;           /* open: being worked on, so meeting it again is a left recursion */
};

struct parser {
    const struct grammar *g;
    const char *text;
    size_t length;
    struct reaches *memo;       /* (n_symbols, length + 1) */
};

static void reach_add(struct reaches *to, size_t end, double ways, double p)
{
    for (int i = 0; i < to->n; i++) {
        if (to->at[i].end == end) {
            to->at[i].ways += ways;
            to->at[i].p += p;
            return;
        }
    }
    to->at = xrealloc(to->at, sizeof *to->at * (size_t)(to->n + 1));
    to->at[to->n++] = (struct reach){end, ways, p};
}

static const struct reaches *parse_symbol(struct parser *ps, int symbol, size_t from);

/* Everything that `part` can reach from one place, times what led there. */
static void parse_part(struct parser *ps, const struct grammar_part *part, struct reach from, struct reaches *to)
{
    if (part->symbol < 0) {
        if (ps->length - from.end >= part->length && memcmp(ps->text + from.end, part->text, part->length) == 0)
            reach_add(to, from.end + part->length, from.ways, from.p);
        return;
    }
    const struct reaches *sub = parse_symbol(ps, part->symbol, from.end);
    for (int i = 0; i < sub->n; i++)
        reach_add(to, sub->at[i].end, from.ways * sub->at[i].ways, from.p * sub->at[i].p);
}

static void parse_choice(struct parser *ps, const struct grammar_choice *choice, size_t from, struct reaches *to)
{
    struct reaches now = {.n = 0};
    reach_add(&now, from, 1, exp(choice->log_p));
    for (int k = 0; k < choice->n_parts; k++) {
        struct reaches next = {.n = 0};
        for (int i = 0; i < now.n; i++)
            parse_part(ps, &choice->parts[k], now.at[i], &next);
        free(now.at);
        now = next;
    }
    for (int i = 0; i < now.n; i++)
        reach_add(to, now.at[i].end, now.at[i].ways, now.at[i].p);
    free(now.at);
}

static const struct reaches *parse_symbol(struct parser *ps, int symbol, size_t from)
{
    struct reaches *r = &ps->memo[(size_t)symbol * (ps->length + 1) + from];
    if (r->known)
        return r;
    assert_false(r->open);
    r->open = true;
    struct reaches found = {.n = 0};
    for (int i = 0; i < ps->g->symbols[symbol].n_choices; i++)
        parse_choice(ps, &ps->g->symbols[symbol].choices[i], from, &found);
    *r = found;
    r->known = true;
    return r;
}

/* Parses the start of a text as one unit. Returns how many derivations there are of text[0..length) as a whole; counts
 * the shorter prefixes that are units too; *log_p is that of the whole. */
static double derivations(const struct grammar *g, const char *text, size_t length, int *prefixes, double *log_p)
{
    const size_t cells = (size_t)g->n_symbols * (length + 1);
    struct parser ps = {.g = g, .text = text, .length = length, .memo = xcalloc(cells, sizeof *ps.memo)};
    const struct reaches *all = parse_symbol(&ps, 0, 0);
    double ways = 0;
    *prefixes = 0;
    for (int i = 0; i < all->n; i++) {
        if (all->at[i].end < length) {
            ++*prefixes;
            continue;
        }
        ways = all->at[i].ways;
        *log_p = log(all->at[i].p);
    }
    for (size_t i = 0; i < cells; i++)
        free(ps.memo[i].at);
    free(ps.memo);
    return ways;
}

static void test_one_derivation(void **state)
{
    (void)state;
    char *unit = malloc(UNIT_MAX);
    for (int domain = 0; domain < DOMAINS; domain++) {
        for (uint64_t i = 0, parsed = 0; parsed < UNITS_PARSED; i++) {
            double printed = 0, found = 0;
            int prefixes;
            const size_t n = corpus_unit((enum data_domain)domain, 7, i, unit, UNIT_MAX, &printed);
            if (n > 400)
                continue;       /* the parser's table grows with the square */
            const double ways = derivations(corpus_grammar((enum data_domain)domain), unit, n, &prefixes, &found);
            if (ways != 1 || prefixes)
                fail_msg("%g derivations and %d units as prefixes: %.*s", ways, prefixes, (int)n, unit);
            assert_true(fabs(printed - found) < 1e-9 * fabs(printed) + 1e-12);
            parsed++;
        }
    }
    free(unit);
}

/* The end of a unit can be seen: what ends it stands nowhere inside. With the test above this makes a text of several
 * units fall apart in one way. */
static void test_units_end_visibly(void **state)
{
    (void)state;
    char *unit = malloc(UNIT_MAX);
    for (uint64_t i = 0; i < 20000; i++) {
        size_t n = corpus_unit(DOMAIN_PROSE, 3, i, unit, UNIT_MAX - 1, NULL);
        assert_true(unit[n - 1] == ' ' || unit[n - 1] == '\n');
        unit[n - 1] = '\0';
        /* A quoted question ends inside its sentence: its mark is followed by a quote, not by the end of the unit. */
        char *stop = strpbrk(unit, ".!?");
        if (stop && stop[0] == '?' && stop[1] == '"')
            stop = strpbrk(stop + 1, ".!?");
        assert_ptr_equal(stop, unit + n - 2);

        n = corpus_unit(DOMAIN_CODE, 3, i, unit, UNIT_MAX - 1, NULL);
        unit[n] = '\0';
        assert_ptr_equal(strstr(unit, "\n\n"), unit + n - 2);

        n = corpus_unit(DOMAIN_FORMULAS, 3, i, unit, UNIT_MAX - 1, NULL);
        unit[n] = '\0';
        assert_ptr_equal(strchr(unit, '\n'), unit + n - 1);
    }
    free(unit);
}

/* The parser finds what it looks for: two derivations, and a unit that is a prefix of another. */
static void test_parser_sees_ambiguity(void **state)
{
    (void)state;
    static const struct production twice[] = {
        {"s", 1, "{a}{a}"}, {"a", 1, "x"}, {"a", 1, "xx"},
    };
    struct grammar g;
    double log_p;
    int prefixes;
    assert_int_equal(grammar_init(&g, twice, 3, NULL), OK);
    assert_true(derivations(&g, "xxx", 3, &prefixes, &log_p) == 2);
    assert_int_equal(prefixes, 1);
    assert_true(fabs(log_p - log(0.5)) < 1e-12);
    assert_true(derivations(&g, "xxy", 3, &prefixes, &log_p) == 0);
    grammar_release(&g);
}

/* ---- entropy ---- */

/* Entropy is H / L by units, so the estimate is a ratio of sums; its error follows from x - rate * length per unit. */
static void test_entropy_is_empirical(void **state)
{
    (void)state;
    static double surprise[UNITS_MEASURED];
    static size_t length[UNITS_MEASURED];
    for (int domain = 0; domain < DOMAINS; domain++) {
        const double rate = corpus_entropy((enum data_domain)domain);
        double sum = 0, chars = 0, squares = 0;
        for (uint64_t i = 0; i < UNITS_MEASURED; i++) {
            double log_p = 0;
            length[i] = corpus_unit((enum data_domain)domain, 11, i, NULL, 0, &log_p);
            surprise[i] = -log_p;
            sum += surprise[i];
            chars += (double)length[i];
            squares += pow(surprise[i] - rate * (double)length[i], 2);
        }
        const double error = sqrt(squares) / chars;
        assert_true(chars > 900000);
        assert_true(fabs(sum / chars - rate) < 4 * error);
        assert_true(error < 0.02 * rate);       /* tight enough to say something */
        assert_true(rate / log(2) > 0.5 && rate / log(2) < 1.3);
    }
}

/* A grammar small enough to do by hand: a run of n >= 1 letters with probability 2^-n, then a stop. */
static void test_entropy_by_hand(void **state)
{
    (void)state;
    static const struct production rows[] = {
        {"unit", 1, "{run}."}, {"run", 1, "{letter}"}, {"run", 1, "{letter}{run}"},
        {"letter", 3, "a"}, {"letter", 1, "b"},
    };
    struct grammar g;
    assert_int_equal(grammar_init(&g, rows, 5, NULL), OK);
    const double letter = -0.75 * log(0.75) - 0.25 * log(0.25);
    assert_true(fabs(g.length - 3) < 1e-12);                            /* two letters on average, and the stop */
    assert_true(fabs(g.entropy - 2 * (log(2) + letter)) < 1e-12);
    grammar_release(&g);
}

static void test_bad_grammars(void **state)
{
    (void)state;
    static const struct production endless[] = {{"s", 1, "{s}{s}x"}, {"s", 1, "y"}};
    static const struct production unknown[] = {{"s", 1, "a{nobody}"}};
    static const struct production open[] = {{"s", 1, "a{s"}};
    static const struct production weightless[] = {{"s", 0, "a"}};
    struct grammar g;
    struct error err;
    assert_int_equal(grammar_init(&g, endless, 2, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "'s' has no finite expected length"));
    assert_int_equal(grammar_init(&g, unknown, 1, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "'{nobody}' names no symbol"));
    assert_int_equal(grammar_init(&g, open, 1, &err), BAD_INPUT);
    assert_int_equal(grammar_init(&g, weightless, 1, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "weight 0"));
}

/* Word lists: the first word most often, each as often as its weight says. */
static void test_frequencies(void **state)
{
    (void)state;
    static const struct production rows[] = {{"s", WORDS, "a|b|c|d"}};
    struct grammar g;
    double count[4] = {0};
    const int draws = 200000;
    assert_int_equal(grammar_init(&g, rows, 1, NULL), OK);
    for (int i = 0; i < draws; i++) {
        char c;
        assert_int_equal(grammar_print(&g, 5, 0, (uint64_t)i, &c, 1, NULL), 1);
        count[c - 'a']++;
    }
    for (int i = 0; i < 4; i++) {
        const double p = exp(g.symbols[0].choices[i].log_p);
        assert_true(fabs(count[i] - draws * p) < 5 * sqrt(draws * p * (1 - p)));
        assert_true(i == 0 || count[i] < count[i - 1]);
    }
    grammar_release(&g);
}

/* ---- texts ---- */

static void test_pure_function(void **state)
{
    (void)state;
    char *all[DOMAINS];
    for (int domain = 0; domain < DOMAINS; domain++) {
        char *text = corpus_generate((enum data_domain)domain, 1, 50000);
        char *same = corpus_generate((enum data_domain)domain, 1, 50000);
        char *part = corpus_generate((enum data_domain)domain, 1, 1234);
        char *other = corpus_generate((enum data_domain)domain, 2, 50000);
        assert_int_equal(strlen(text), 50000);
        assert_int_equal(strlen(part), 1234);
        assert_memory_equal(text, same, 50001);
        assert_memory_equal(text, part, 1234);
        assert_memory_not_equal(text, other, 100);
        free(same);
        free(part);
        free(other);
        all[domain] = text;
    }
    assert_memory_not_equal(all[0], all[1], 100);
    assert_memory_not_equal(all[1], all[2], 100);
    for (int domain = 0; domain < DOMAINS; domain++)
        free(all[domain]);
}

static void test_alphabet(void **state)
{
    (void)state;
    for (int domain = 0; domain < DOMAINS; domain++) {
        bool used[128], seen[128] = {false};
        char *text = corpus_generate((enum data_domain)domain, 9, 1000000);
        corpus_alphabet((enum data_domain)domain, used);
        for (int i = 0; i < 1000000; i++)
            seen[text[i] & 127] = true;
        assert_memory_equal(used, seen, sizeof used);
        for (int c = 0; c < 128; c++)
            assert_true(!used[c] || c == '\n' || (c >= ' ' && c < 127));
        free(text);
    }
}

static void test_room_is_kept(void **state)
{
    (void)state;
    char full[UNIT_MAX], cut[8] = "#######";
    const size_t n = corpus_unit(DOMAIN_PROSE, 1, 0, full, sizeof full, NULL);
    assert_int_equal(corpus_unit(DOMAIN_PROSE, 1, 0, cut, 5, NULL), n);
    assert_memory_equal(cut, full, 5);
    assert_memory_equal(cut + 5, "##", 2);
}

/* The first characters of each domain as they are; a change here changes every result on the corpus. */
static void test_golden(void **state)
{
    (void)state;
    static const char *const golden[DOMAINS] = {
        "When many farmers want to crawl across the forest, Anna is not grateful. Nora wants to remember t"
        "he window that is wonderful. A horse beside the old bridge runs around the lake. Where is the son"
        "g? Eve",
        "def get_item(index, left):\n"
        "    print(compute_name(make_node(current), 0 + count, (get_index(2) * items[255]), index) * count"
        ")\n"
        "    return key\n"
        "\n"
        "def make_message(parent):\n"
        "    return names[value] * width\n",
        "position(t) = t - 2*t^2\n"
        "the integral of exp(x) is exp(x)\n"
        "g(x) = 3*x - 5*sqrt(4*x)\n"
        "the derivative of sin(t) is cos(t)\n"
        "6 * 2 = 12\n"
        "f(x) = 3\n"
        "2 + 8 = 10\n"
        "p(x) = 3 + x + 2*x^2\n"
        "f(x) = x^3 + x^2 + 2*x^2 + 7*x^",
    };
    for (int domain = 0; domain < DOMAINS; domain++) {
        char *text = corpus_generate((enum data_domain)domain, 1, 200);
        assert_int_equal(strlen(golden[domain]), 200);
        assert_string_equal(text, golden[domain]);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_derivation),       cmocka_unit_test(test_units_end_visibly),
        cmocka_unit_test(test_parser_sees_ambiguity), cmocka_unit_test(test_entropy_is_empirical),
        cmocka_unit_test(test_entropy_by_hand),      cmocka_unit_test(test_bad_grammars),
        cmocka_unit_test(test_frequencies),          cmocka_unit_test(test_pure_function),
        cmocka_unit_test(test_alphabet),             cmocka_unit_test(test_room_is_kept),
        cmocka_unit_test(test_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
