/* The configuration: defaults, values, overrides, printing, the schema itself and lookup by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config_int.h"
#include "passes/optimize.h"
#include "core/fs.h"
#include "config_parsed.h"

static const char *const shipped[] = {
    "quickstart",       "tinyllama-ex3",  "tinyllama-small", "tinyllama-medium", "k1-baseline-b32",
    "k1-baseline-b256", "lecture-gpt-b4", "char-gpt-b128",   "gpt2-124m-b4",     "gpt2-124m-b32",
    "k1-tree-b32",      "k1-tree-b256",
};
enum { SHIPPED = sizeof shipped / sizeof shipped[0] };

static void test_defaults(void **state)
{
    (void)state;
    const struct config c = parse_ok("model: {arch: gpt}");
    assert_string_equal(c.file, "t.yaml");
    assert_string_equal(c.name, "t");
    assert_int_equal(c.model.arch, ARCH_GPT);
    assert_int_equal(c.model.dim, 256);
    assert_int_equal(c.model.kv_heads, 8);
    assert_int_equal(c.model.ffn, 1024);
    assert_true(c.model.norm_eps == 1e-5 && c.model.rope_base == 10000 && c.model.dropout == 0);
    assert_int_equal(c.data.source, SOURCE_CORPUS);
    assert_int_equal(c.data.chars, 2000000);
    assert_string_equal(c.data.path, "");
    assert_int_equal(c.train.steps, 2000);
    assert_true(c.train.lr == 3e-4 && c.train.beta2 == 0.999 && c.train.eps == 1e-8 && c.train.clip == 1);
    assert_int_equal(c.train.seed, 42);
    assert_int_equal(c.eval.batch_size, 8);
    assert_true(c.eval.every.n == 200 && !c.eval.every.epochs);
    assert_int_equal(c.checkpoint.keep, 3);
    assert_int_equal(c.optimize.passes.choice, PASSES_ALL);
    assert_int_equal(c.device, DEVICE_AUTO);
}

static void test_derived(void **state)
{
    (void)state;
    const struct config c = parse_ok("model: {arch: llama, dim: 96, heads: 6, kv_heads: 3}\ntrain: {batch_size: 5}\n");
    assert_int_equal(c.model.kv_heads, 3);
    assert_int_equal(c.model.ffn, 384);
    assert_int_equal(c.eval.batch_size, 5);
    assert_true(c.model.norm_eps == 1e-6);
    assert_int_equal(parse_ok("model: {arch: gpt}\neval: {batch_size: 3}").eval.batch_size, 3);
    assert_int_equal(parse_ok("model: {arch: k1, tree: [3, 3]}").model.layers, 13);
    assert_int_equal(parse_ok("model: {arch: k1, tree: [4, 3, 2], layers: 41}").model.layers, 41);
    assert_int_equal(parse_ok("model: {arch: k1, tree: [2]}\nk1: {select: all}").model.layers, 3);      /* all may be fewer than k */
}

/* What a file may hold beside the obvious. */
static void test_values(void **state)
{
    (void)state;
    struct config c = parse_ok("model: {arch: 'postln', dim: +64, heads: 1}\n"
                               "data:\ntrain: {lr: 1E-3, min_lr: .0, clip: 2., weight_decay: -0.0, init: ~}\n"
                               "eval: {every: 2 epochs}\ncheckpoint: {every: 300 steps}\noptimize: {passes: []}\n"
                               "device: cuda\nthreads: 3\n");
    assert_int_equal(c.model.arch, ARCH_POSTLN);
    assert_int_equal(c.model.dim, 64);
    assert_true(c.train.lr == 1e-3 && c.train.min_lr == 0 && c.train.clip == 2);
    assert_true(c.train.weight_decay == 0 && !__builtin_signbit(c.train.weight_decay));
    assert_true(c.eval.every.n == 2 && c.eval.every.epochs);
    assert_true(c.checkpoint.every.n == 300 && !c.checkpoint.every.epochs);
    assert_int_equal(c.optimize.passes.choice, PASSES_NONE);
    assert_int_equal(c.device, DEVICE_CUDA);
    assert_int_equal(c.threads, 3);

    c = parse_ok("model: {arch: gpt, heads: &n 4, layers: *n}\neval: {every: 0 epochs}\n"
                 "data: {source: text, path: \"d\\u00e9j\\\"a \\\\ vu.txt\"}\n");
    assert_int_equal(c.model.layers, 4);
    assert_true(c.eval.every.n == 0 && !c.eval.every.epochs);
    assert_string_equal(c.data.path, "d\xC3\xA9j\"a \\ vu.txt");

    parse_ok(GPT "train: {steps: 50, epochs: 1}"); /* no warm-up check by steps when epochs count */
    parse_ok("model: {arch: llama, dim: 24, heads: 12, kv_heads: 1}");
    c = parse_ok("--- !!map\nmodel: {arch: !!str gpt, dim: !!int 64}\n...\n");
    assert_int_equal(c.model.dim, 64);
}

static void test_set_order(void **state)
{
    (void)state;
    static const char *const sets[] = {
        "model.heads=6",         "train.lr= 1e-3 ",    "model.heads=16",      "data.source=text",
        "data.path='a b=c.txt'", "optimize.passes=[]", "eval.every=2 epochs", "threads=2"};
    static const char text[] = "model: {arch: gpt, heads: 4}\ntrain: {lr: 0.5}\n";
    struct config c;
    struct error err = {0};
    assert_int_equal(config_parse(&c, "t.yaml", text, strlen(text), sets, 8, &err), OK);
    assert_int_equal(c.model.heads, 16);
    assert_true(c.train.lr == 1e-3);
    assert_string_equal(c.data.path, "a b=c.txt");
    assert_int_equal(c.optimize.passes.choice, PASSES_NONE);
    assert_true(c.eval.every.epochs && c.eval.every.n == 2);
    assert_int_equal(c.threads, 2);
}

static uint32_t passes_on(const char *text, const char *set)
{
    struct config c;
    struct error err = {0};
    uint32_t on = 0;
    if (config_parse(&c, "t.yaml", text, strlen(text), &set, set ? 1 : 0, &err) != OK)
        fail_msg("%s", err.text);
    for (int i = 0; pass_table[i].name; i++)
        on |= (uint32_t)config_pass_is_on(&c, i) << i;
    assert_int_equal(on, config_pass_set(&c));
    return on;
}

static uint32_t bit_of(const char *name) { return 1u << pass_find(name); }

/* Every pass of the table has its key, with its words and its default, but for the one that is a precision. */
static void test_passes_are_those_of_the_table(void **state)
{
    (void)state;
    int precisions = 0;
    for (int i = 0; pass_table[i].name; i++) {
        char key[64];
        const int at = config_key_find(pass_table[i].key);
        assert_true(at >= 0);
        if (pass_table[i].traits & PASS_IS_PRECISION) {
            precisions++;
            continue;
        }
        snprintf(key, sizeof key, "optimize.%s", pass_table[i].name);
        assert_string_equal(pass_table[i].key, key);
        assert_string_equal(config_key(at).help, pass_table[i].what);
        assert_int_equal(config_key(at).offset, offsetof(struct config, optimize.pass) + (size_t)i * sizeof(enum pass_switch));
    }
    assert_int_equal(precisions, 1);
}

/* Whatever the config says of passes, one that it does not name is switched on and off, and nothing else changes. */
static void test_passes_are_switched(void **state)
{
    (void)state;
    static const char *const texts[] = {GPT, GPT "optimize: {passes: none}", GPT "optimize: {passes: [fuse-loss]}",
                                        GPT "optimize: {fewer-meetings: off, precision: bf16}"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        for (int i = 0; pass_table[i].name; i++) {
            struct config c, read;
            struct error err;
            if (config_parse(&c, "t.yaml", texts[k], strlen(texts[k]), NULL, 0, &err) != OK)
                fail_msg("%s", err.text);
            const pass_set before = config_pass_set(&c), bit = (pass_set)1 << i;
            if (config_pass_is_named(&c, i))
                continue;
            for (int round = 0; round < 2; round++) {
                const bool on = !(config_pass_set(&c) & bit);
                config_pass_switch(&c, i, on);
                assert_int_equal(config_pass_set(&c), on ? before | bit : before & ~bit);
                char *text = config_text(&c);           /* and so it is written */
                if (config_parse(&read, "t.yaml", text, strlen(text), NULL, 0, &err) != OK)
                    fail_msg("%s", err.text);
                assert_int_equal(config_pass_set(&read), config_pass_set(&c));
                free(text);
            }
        }
}

static void test_differences(void **state)
{
    (void)state;
    static const char one[] = GPT "data: {source: text, path: 'a: b'}", two[] = GPT "data: {source: text, path: c}\nthreads: 3";
    struct config a, b;
    struct config_difference d;
    struct error err;
    int at = 0;
    assert_int_equal(config_parse(&a, "a.yaml", one, strlen(one), NULL, 0, &err), OK);
    assert_int_equal(config_parse(&b, "b.yaml", two, strlen(two), NULL, 0, &err), OK);
    config_pass_switch(&b, pass_find("fewer-meetings"), false);
    assert_true(config_differ(&d, &a, &b, &at));
    assert_string_equal(d.key, "data.path");
    assert_string_equal(d.a, "\"a: b\"");
    assert_string_equal(d.b, "\"c\"");
    assert_true(config_differ(&d, &a, &b, &at));
    assert_string_equal(d.key, "optimize.fewer-meetings");
    assert_string_equal(d.b, "off");
    assert_true(config_differ(&d, &a, &b, &at));
    assert_string_equal(d.key, "threads");
    assert_false(config_differ(&d, &a, &b, &at));
    at = 0;
    assert_false(config_differ(&d, &a, &a, &at));
}

/* What another key makes idle is told where somebody has changed it, and no more of it than that. */
static void test_idle(void **state)
{
    (void)state;
    static const struct { const char *text, *words; } cases[] = {
        {GPT, NULL},
        {GPT "data: {source: text, path: a, chars: 20}", "data.chars is 20, and says nothing, as data.source is text"},
        {GPT "data: {source: text, path: a, chars: 2000000}", NULL},
        {GPT "data: {chars: 20}", NULL},
        {GPT "data: {domains: [prose, code], chars: 20}", NULL},
        {GPT "data: {max_chars: 30}", "data.max_chars is 30, and says nothing, as data.source is corpus"},
        {GPT "data: {source: bin, path: a, tokens: byte}", "data.tokens is byte, and says nothing, as data.source is bin"},
        {GPT "data: {source: text, path: a, tokenizer: t.json, tokens: byte}", "data.tokens is byte, and says nothing, as data.tokenizer is \"t.json\""},
        {GPT "data: {source: text, path: a, val_path: b, val_fraction: 0.5}", "data.val_fraction is 0.5, and says nothing, as data.val_path is \"b\""},
        {"model: {arch: gpt, rope_base: 5}", "model.rope_base is 5, and says nothing, as model.arch is gpt"},
        {"model: {arch: llama, rope_base: 5}", NULL},
        {"model: {arch: llama, rope_factor: 5}", "model.rope_factor is 5, and says nothing, as model.rope_scaling is none"},
        {"model: {arch: llama, rope_factor: 5, rope_scaling: linear}", NULL},
        {"model: {arch: llama, rope_low: 2, rope_scaling: linear}", "model.rope_low is 2, and says nothing, as model.rope_scaling is linear"},
        {"model: {arch: llama, rope_low: 2, rope_scaling: llama3}", NULL},
        {GPT "train: {min_lr: 1.0e-5}", NULL},
        {GPT "train: {steps: 50}", NULL},
        {GPT "train: {steps: 50, epochs: 3}", "train.steps is 50, and says nothing, as train.epochs is 3"},
        {GPT "train: {min_lr: 1.0e-5, schedule: constant}", "train.min_lr is 1.0e-05, and says nothing, as train.schedule is constant"},
        {GPT "k1: {k: 2}", "k1.k is 2, and says nothing, as model.arch is gpt"},
        {"model: {arch: k1, tree: [3]}\nk1: {k: 2}", NULL},
        {"model: {arch: k1, tree: [3]}\nk1: {k: 2, select: all}", "k1.k is 2, and says nothing, as k1.select is all"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[CONFIG_IDLE_WORDS];
        int at = 0;
        const struct config c = parse_ok(cases[i].text);
        if (config_tell_idle(&c, &at, words) != (cases[i].words != NULL))
            fail_msg("%s: %s", cases[i].text, cases[i].words ? "nothing is told" : words);
        if (!cases[i].words)
            continue;
        assert_string_equal(words, cases[i].words);
        assert_false(config_tell_idle(&c, &at, words));
    }
}

static void test_passes(void **state)
{
    (void)state;
    const uint32_t all = (2 * bit_of("group-levels") - 1) & ~bit_of("mixed-precision"), qkv = bit_of("fuse-qkv"), loss = bit_of("fuse-loss");
    const struct { const char *text, *set; uint32_t on; } cases[] = {
        {GPT, NULL, all},
        {GPT "optimize: {passes: all}", NULL, all},
        {GPT "optimize: {passes: none}", NULL, 0},
        {GPT "optimize: {passes: []}", NULL, 0},
        {GPT "optimize: {passes: [fuse-qkv]}", NULL, qkv},
        {GPT "optimize:\n  passes:\n    - fuse-loss\n    - 'fuse-qkv'\n    - fuse-loss\n", NULL, qkv | loss},
        {GPT "optimize: {passes: fuse-qkv}", NULL, qkv},
        {GPT "optimize: {passes: none, fuse-qkv: on}", NULL, qkv},
        {GPT "optimize: {passes: [fuse-loss], fuse-qkv: on, fuse-loss: off}", NULL, qkv},
        {GPT "optimize: {fuse-qkv: off}", NULL, all & ~qkv},
        {GPT "optimize: {fuse-qkv: off}", "optimize.fuse-qkv=auto", all},
        {GPT, "optimize.fuse-qkv=off", all & ~qkv},
        {GPT, "optimize.passes=none", 0},
        {GPT, "optimize.passes=[]", 0},
        {GPT, "optimize.passes=[ ]", 0},
        {GPT, "optimize.passes=fuse-qkv,fuse-loss", qkv | loss},
        {GPT "optimize: {passes: [async-metrics]}", "optimize.passes=[fuse-qkv, fuse-loss]", qkv | loss},
        {GPT "optimize: {passes: [async-metrics]}", "optimize.passes=all", all},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(passes_on(cases[i].text, cases[i].set), cases[i].on);
}

static void test_passes_are_printed(void **state)
{
    (void)state;
    const struct config c = parse_ok(GPT "optimize: {passes: [fuse-loss, fuse-qkv], hoist-constants: off}");
    char *text = config_text(&c);
    assert_non_null(strstr(text, "\n  passes: [fuse-qkv, fuse-loss]\n  flash-attention: auto\n"));
    assert_non_null(strstr(text, "\n  hoist-constants: off\n"));
    free(text);
    check_round_trip(&c);
}

static void test_round_trip_shipped(void **state)
{
    (void)state;
    for (int i = 0; i < SHIPPED; i++) {
        char path[CONFIG_PATH_MAX];
        struct config c;
        struct error err = {0};
        snprintf(path, sizeof path, "%s/%s.yaml", HONE_CONFIGS, shipped[i]);
        if (config_load(&c, path, NULL, 0, &err) != OK)
            fail_msg("%s", err.text);
        assert_string_equal(c.name, shipped[i]);
        assert_string_equal(c.file, path);
        check_round_trip(&c);
    }
}

static void test_round_trip_odd(void **state)
{
    (void)state;
    struct config c = parse_ok(
        "model: {arch: llama, dropout: 0.30000000000000004, rope_base: 123456789.125, norm_eps: "
        "1.2345678901234567e-7}\n"
        "data: {source: bin, path: \"\\\"q\\\" \\\\ # : {x} \\u00e9\\u4e16\\U0001F600*.bin\", val_path: ' ~ ', domain: "
        "code}\n"
        "train: {lr: 1.0e-300, init: 'null', seed: 9007199254740992, schedule: linear, on_nan: skip, decay: all}\n"
        "eval: {every: 1 epoch, batch_size: 1}\ncheckpoint: {every: 3 epochs}\n"
        "optimize: {passes: [fuse-loss, fuse-qkv], fuse-qkv: off, async-metrics: on}\n"
        "backend: {kernels: reference}\ndevice: cpu\n");
    check_round_trip(&c);
    assert_string_equal(c.train.init, "null");
    c = parse_ok("model: {arch: k1, tree: [2, 6, 3]}\ndata: {domains: [formulas, ., prose]}\n");
    check_round_trip(&c);
    assert_string_equal(config_name(&c.data.domains, 1), ".");
}

static void test_print(void **state)
{
    (void)state;
    static const char expected[] =
        "model:\n  arch: gpt\n  vocab: 0\n  dim: 256\n  layers: 4\n  heads: 8\n  kv_heads: 8\n";
    const struct config c = parse_ok(GPT);
    char *text;
    size_t length;
    FILE *f = open_memstream(&text, &length);
    config_print(&c, f);
    fclose(f);
    assert_memory_equal(text, expected, strlen(expected));
    assert_non_null(strstr(text, "\n  lr: 0.0003\n"));
    assert_non_null(strstr(text, "\n  eps: 1.0e-08\n"));
    assert_non_null(strstr(text, "\n  rope_base: 10000\n"));
    assert_non_null(strstr(text, "\ndevice: auto\nthreads: 0\n"));
    free(text);
}

/* Every default is one that the file may hold; every enum has a word for every value; every row has its help. */
static void test_schema(void **state)
{
    (void)state;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key row_of = config_key(i), *k = &row_of;
        struct config c;
        struct error err = {0};
        struct config_reader r = {.c = &c, .file = "t", .err = &err};
        assert_int_equal(config_key_find(k->name), i);
        assert_true(config_key_section(i) >= 0 && strlen(k->help) > 5);
        const bool word = k->type == KEY_WORD || k->type == KEY_NAMES;
        assert_true(word == (k->choices != NULL));
        assert_true(word || k->type == KEY_PATH || k->type == KEY_PASSES || k->min < k->max);
        assert_true(k->type == KEY_REAL || k->max <= 0x1p53);
        if (k->initial && config_value_read(&r, i, (struct config_place){0}, k->initial, false) != OK)
            fail_msg("%s", err.text);
        for (const struct config_choice *p = k->choices; p && p->word; p++) {
            assert_int_equal(config_value_read(&r, i, (struct config_place){0}, p->word, false), OK);
            assert_string_equal(config_word(k->name, p->value), p->word);
        }
    }
}

/* What another version of hone has saved: keys that it had, and that only say how a run works, are left out. */
static void test_saved_by_another_version(void **state)
{
    (void)state;
    static const char text[] = "model: {arch: llama, dim: 64}\noptimize: {passes: [fuse-qkv, fuse-all], fuse-all: auto, no-meetings: 'on'}\n"
                               "eval: {sometimes: 3}\n";
    static const char *const refused[] = {"model: {arch: gpt, hats: 3}\n", "model: {arch: gpt}\ntrain: {hats: 3}\n",
                                          "model: {arch: gpt}\ndata: {hats: 3}\n", "model: {arch: gpt}\nhats: {a: 3}\n",
                                          "model: {arch: gpt}\neval: {every: often}\n"};
    struct config c;
    struct error err;
    assert_int_equal(config_parse(&c, "t.yaml", text, sizeof text - 1, NULL, 0, &err), BAD_INPUT);
    if (config_parse_saved(&c, "t.yaml", text, sizeof text - 1, NULL, 0, &err) != OK)
        fail_msg("%s", err.text);
    assert_int_equal(c.model.dim, 64);
    assert_true(config_pass_set(&c) == (pass_set)1 << pass_find("fuse-qkv"));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(config_parse_saved(&c, "t.yaml", refused[i], strlen(refused[i]), NULL, 0, &err), BAD_INPUT);
}

static void test_reference(void **state)
{
    (void)state;
    char *text, row[128];
    size_t length;
    FILE *f = open_memstream(&text, &length);
    config_print_reference(f);
    fclose(f);
    for (int i = 0; i < config_key_count(); i++) {
        snprintf(row, sizeof row, "\n| `%s` | ", config_key(i).name);
        assert_non_null(strstr(text, row));
    }
    assert_non_null(strstr(text, "| `model.heads` | `8` | 1 to 4096 | attention heads; must divide dim |\n"));
    assert_non_null(strstr(text, "| `device` | `auto` | `auto`, `cpu`, `cuda` | where to run; auto is the CPU, also where there is a GPU |\n"));
    char *page = NULL;
    size_t page_length = 0;
    assert_int_equal(fs_read(HONE_CONFIGS "/../docs/config.md", &page, &page_length, 0, NULL), OK);
    assert_string_equal(page, text); /* docs/config.md is what the schema says today */
    free(page);
    free(text);
}

static void test_distance(void **state)
{
    (void)state;
    assert_int_equal(suggest_distance("warmup", "warmup"), 0);
    assert_int_equal(suggest_distance("warmpu", "warmup"), 1);
    assert_int_equal(suggest_distance("", "abc"), 3);
    assert_int_equal(suggest_distance("abc", ""), 3);
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(suggest_distance("abcd", "badc"), 2);
}

static char folder[] = "/tmp/hone-config-XXXXXX", home[CONFIG_PATH_MAX];

static int enter_folder(void **state)
{
    (void)state;
    return !getcwd(home, sizeof home) || !mkdtemp(folder) || chdir(folder) || mkdir("configs", 0700);
}

static int leave_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return chdir(home) || system(command);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void expect_load_error(const char *path, const char *error)
{
    struct config c;
    struct error err = {0};
    assert_int_equal(config_load(&c, path, NULL, 0, &err), BAD_INPUT);
    assert_string_equal(err.text, error);
}

static void test_lookup(void **state)
{
    (void)state;
    struct config c;
    struct error err = {0};
    assert_int_equal(config_load(&c, "gpt2-124m-b4", NULL, 0, &err), OK); /* from where hone was built */
    assert_int_equal(c.model.vocab, 50304);
    assert_string_equal(c.name, "gpt2-124m-b4");

    write_file("configs/gpt2-124m-b4.yaml", "model: {arch: gpt, vocab: 7}\n"); /* the working folder comes first */
    assert_int_equal(config_load(&c, "gpt2-124m-b4", NULL, 0, &err), OK);
    assert_int_equal(c.model.vocab, 7);
    assert_string_equal(c.file, "configs/gpt2-124m-b4.yaml");

    write_file("quickstart", "not: this\n"); /* a name is no file */
    assert_int_equal(config_load(&c, "quickstart", NULL, 0, &err), OK);
    write_file("my.v2.yml", GPT);
    assert_int_equal(config_load(&c, "my.v2.yml", NULL, 0, &err), OK);
    assert_string_equal(c.name, "my.v2");
    write_file("plain", GPT);
    assert_int_equal(config_load(&c, "plain", NULL, 0, &err), OK);
    assert_string_equal(c.name, "plain");
}

static void test_lookup_fails(void **state)
{
    (void)state;
    struct config c;
    struct error err = {0};
    char expected[2048], cwd[CONFIG_PATH_MAX];
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(config_load(&c, "quickstrat", NULL, 0, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "there is no config 'quickstrat': looked for 'quickstrat.yaml' in 'configs', '"));
    assert_non_null(strstr(err.text, "/share/hone/configs'; did you mean 'quickstart'?"));
    assert_int_equal(config_load(&c, "tinyllama", NULL, 0, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "; did you mean 'tinyllama-ex3', 'tinyllama-medium' or 'tinyllama-small'?"));
    assert_int_equal(config_load(&c, "zzzz", NULL, 0, &err), BAD_INPUT);
    assert_non_null(
        strstr(err.text, "; shipped configs are char-gpt-b128, forget-baseline13, forget-baseline4, forget-fixed5, "));
    snprintf(expected, sizeof expected, "there is no file 'x/quickstart.yaml' in '%s'; did you mean 'quickstart'?",
             cwd);
    expect_load_error("x/quickstart.yaml", expected);
    expect_load_error("/nowhere/quickstart.yaml",
                      "there is no file '/nowhere/quickstart.yaml'; did you mean 'quickstart'?");
    expect_load_error("", "a config is wanted: a file, or a name like quickstart");
}

static void test_bad_files(void **state)
{
    (void)state;
    char big[64] = "";
    expect_load_error("configs", "'configs': this is a folder; name a YAML file in it");
    expect_load_error("./configs/", "'./configs/': this is a folder; name a YAML file in it");
    expect_load_error("/dev/null", "'/dev/null': this is not a regular file; a config is a YAML file");
    write_file("empty.yaml", big);
    expect_load_error("empty.yaml", "'empty.yaml': there is nothing in it; a config has at least 'model: {arch: gpt}'");
    write_file("big.yaml", GPT);
    assert_int_equal(truncate("big.yaml", CONFIG_TEXT_MAX + 1), 0);
    expect_load_error("big.yaml",
                      "'big.yaml': it has 1048577 bytes, and a config has at most 1048576; is it the right file?");
    assert_int_equal(truncate("big.yaml", 100), 0);
    expect_load_error("big.yaml",
                      "'big.yaml' line 2: byte 20 is not text (control characters are not allowed); a config is a "
                      "YAML file in UTF-8");
}

/* A run that is cut short has a shorter warm-up; who writes a warm-up beside fewer steps contradicts them. */
static void test_short_runs(void **state)
{
    (void)state;
    static const char text[] = "model: {arch: gpt}\ntrain: {steps: 200, warmup: 100}\n", plain[] = "model: {arch: gpt}\n";
    const char *const cut[] = {"train.steps=20"}, *const both[] = {"train.steps=20", "train.warmup=30"};
    struct config c;
    struct error err;
    assert_int_equal(config_parse(&c, "t.yaml", text, sizeof text - 1, cut, 1, &err), OK);
    assert_int_equal(c.train.warmup, 20);
    assert_int_equal(config_parse(&c, "t.yaml", plain, sizeof plain - 1, cut, 1, &err), OK);
    assert_int_equal(c.train.warmup, 20);
    assert_int_equal(config_parse(&c, "t.yaml", text, sizeof text - 1, both, 2, &err), BAD_INPUT);
}

/* What a pass never has whole in memory may be of any size. */
static void test_sizes_that_passes_allow(void **state)
{
    (void)state;
    assert_int_equal(parse_ok("model: {arch: gpt, seq: 1000000}").model.seq, 1000000);
    assert_int_equal(parse_ok("model: {arch: gpt, vocab: 16777216}\ntrain: {batch_size: 1024}").train.batch_size, 1024);
    assert_int_equal(parse_ok("model: {arch: gpt, seq: 1000000}\noptimize: {passes: [flash-attention]}").model.heads, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_that_passes_allow),
        cmocka_unit_test(test_short_runs), cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_derived),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_set_order),
        cmocka_unit_test(test_passes_are_those_of_the_table), cmocka_unit_test(test_passes_are_switched),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_passes_are_printed),
        cmocka_unit_test(test_round_trip_shipped),
        cmocka_unit_test(test_round_trip_odd),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_schema),
        cmocka_unit_test(test_saved_by_another_version),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_lookup_fails),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
