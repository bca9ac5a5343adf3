/* The configuration: lists, and data.domains. */
#include "config_parsed.h"

/* Lists, as YAML has them and as the command line has them: numbers that are wanted, then the words of data.domains. */
static void test_lists(void **state)
{
    (void)state;
    static const struct { const char *text, *set, *tree, *domains; } cases[] = {       /* domains NULL: they are not printed */
        {GPT, NULL, "[]", NULL},
        {"model: {arch: k1, tree: [3, 4]}", NULL, "[3, 4]", NULL},
        {"model:\n  arch: k1\n  tree:\n  - 3\n  - &n 2\n  - *n\n", NULL, "[3, 2, 2]", NULL},
        {"model: {arch: k1, tree: 5}", NULL, "[5]", NULL},
        {"model: {arch: k1, tree: [3, 4]}", "model.tree=[2, 5 ,3]", "[2, 5, 3]", NULL},
        {"model: {arch: k1, tree: [3, 4]}", "model.tree=7,6", "[7, 6]", NULL},
        {GPT "data: {domains: [code, 'prose']}", NULL, "[]", "[code, prose]"},
        {GPT "data:\n  domains:\n    - formulas\n", NULL, "[]", "[formulas]"},
        {GPT "data: {domains: [formulas]}", "data.domains=prose, code", "[]", "[prose, code]"},
        {GPT, "data.domains=[formulas]", "[]", "[formulas]"},
        {GPT "data: {domains: [., '/', code]}", NULL, "[]", "[\".\", \"/\", code]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c;
        struct error err;
        char tree[64], domains[64];
        const char *set = cases[i].set;
        if (config_parse(&c, "t.yaml", cases[i].text, strlen(cases[i].text), &set, set ? 1 : 0, &err) != OK)
            fail_msg("%s", err.text);
        snprintf(tree, sizeof tree, "\n  tree: %s\n", cases[i].tree);
        snprintf(domains, sizeof domains, "\n  domains: %s\n", cases[i].domains ? cases[i].domains : "");
        char *text = config_text(&c);
        assert_non_null(strstr(text, tree));
        if (cases[i].domains)
            assert_non_null(strstr(text, domains));
        assert_true(!cases[i].domains == !strstr(text, "\n  domains: "));
        assert_true(!cases[i].domains == !!strstr(text, "\n  domain: "));
        free(text);
    }
}

/* Of data.domains and another key that says what the data is, one in the file gives way to the other on the command line. */
static void test_domains_settle(void **state)
{
    (void)state;
    static const struct { const char *text, *set; int64_t domains; enum data_domain domain; enum data_source source; } cases[] = {
        {GPT "data: {domains: [code, prose]}", "data.domain=formulas", 0, DOMAIN_FORMULAS, SOURCE_CORPUS},
        {GPT "data: {domains: [code, prose]}", "data.source=corpus", 0, DOMAIN_PROSE, SOURCE_CORPUS},
        {GPT "data: {domain: code}", "data.domains=prose,formulas", 2, DOMAIN_PROSE, SOURCE_CORPUS},
        {GPT "data: {source: text, path: x, val_path: y, val_fraction: 0.2}", "data.domains=prose", 1, DOMAIN_PROSE, SOURCE_CORPUS},
        {GPT "data: {domains: [code, prose], source: corpus, path: ''}", "train.steps=9", 2, DOMAIN_PROSE, SOURCE_CORPUS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c;
        struct error err;
        if (config_parse(&c, "t.yaml", cases[i].text, strlen(cases[i].text), &cases[i].set, 1, &err) != OK)
            fail_msg("%s", err.text);
        assert_int_equal(c.data.domains.n, cases[i].domains);
        assert_int_equal(c.data.domain, cases[i].domain);
        assert_int_equal(c.data.source, cases[i].source);
        assert_string_equal(c.data.path, "");
        assert_string_equal(c.data.val_path, "");
        check_round_trip(&c);
    }
}

/* What a run has kept may name files that are gone; a --set over it may not. */
static void test_domains_saved(void **state)
{
    (void)state;
    const char text[] = GPT "data: {domains: [gone.txt, code]}", *set = "data.domains=[gone.txt]";
    struct config c;
    struct error err;
    assert_int_equal(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), BAD_INPUT);
    assert_int_equal(config_parse_saved(&c, "t.yaml", text, strlen(text), NULL, 0, &err), OK);
    assert_string_equal(config_name(&c.data.domains, 0), "gone.txt");
    assert_string_equal(config_name(&c.data.domains, 1), "code");
    assert_int_equal(config_parse_saved(&c, "t.yaml", text, strlen(text), &set, 1, &err), BAD_INPUT);
}

/* What says how long training is does not stop who looks at what was trained, on fewer domains or on other data. */
static void test_domains_of_a_run(void **state)
{
    (void)state;
    const char text[] = GPT "data: {domains: [prose, code, formulas]}\ntrain: {steps: 50, warmup: 100}";
    const char epochs[] = GPT "train: {epochs: 2}\neval: {every: 1 epoch}\n";
    const char *const sets[] = {"data.domains=[code]", "data.domain=code"};
    struct config c;
    struct error err;
    assert_int_equal(config_parse(&c, "t.yaml", text, strlen(text), NULL, 0, &err), OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(config_parse(&c, "t.yaml", text, strlen(text), &sets[i], 1, &err), BAD_INPUT);
        if (config_parse_saved(&c, "t.yaml", text, strlen(text), &sets[i], 1, &err) != OK)
            fail_msg("%s", err.text);
    }
    assert_int_equal(config_parse(&c, "t.yaml", epochs, strlen(epochs), &sets[0], 1, &err), BAD_INPUT);
    if (config_parse_saved(&c, "t.yaml", epochs, strlen(epochs), &sets[0], 1, &err) != OK)
        fail_msg("%s", err.text);
}

/* Names up to the room that there is, and one byte more. */
static void test_domains_room(void **state)
{
    (void)state;
    struct config c;
    struct error err;
    char text[2 * CONFIG_NAMES_BYTES];
    for (int rest = 1022; rest < 1025; rest++) {
        snprintf(text, sizeof text, GPT "data: {domains: [%0*d, %0*d]}", 1023, 7, rest, 8);
        const enum status st = config_parse_saved(&c, "t.yaml", text, strlen(text), NULL, 0, &err);
        assert_int_equal(st, rest < 1024 ? OK : BAD_INPUT);
    }
    snprintf(text, sizeof text, GPT "data: {domains: [%0*d, %0*d, a]}", 1023, 7, 1023, 8);
    assert_int_equal(config_parse_saved(&c, "t.yaml", text, strlen(text), NULL, 0, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "shorter paths"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_domains_settle),
        cmocka_unit_test(test_domains_saved),
        cmocka_unit_test(test_domains_of_a_run),
        cmocka_unit_test(test_domains_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
