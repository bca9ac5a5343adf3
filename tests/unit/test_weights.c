/* Models that others wrote: their logits are those that Hugging Face's transformers computes (scripts/make-hf-fixtures.py made the files), a
 * round trip changes no bit, and what does not fit is named. */
#include <unistd.h>

#include "core/fs.h"
#include "support/kernels.h"
#include "support/models.h"
#include "weights/weights_int.h"

#define HF HONE_FIXTURES "/hf/"

static struct weights *open_weights(const char *path)
{
    struct weights *w = NULL;
    struct error err;
    assert_ok(weights_open(&w, path, &err), err);
    return w;
}

static struct config config_of(const struct weights *w, const char *set)
{
    struct config c;
    struct error err;
    assert_ok(weights_config(w, &c, &set, set ? 1 : 0, &err), err);
    return c;
}

/* The forward program with the weights in it. */
static struct exec *exec_of(const struct weights *w, const struct config_model *m, int64_t batch)
{
    struct program *p = NULL;
    struct error err;
    assert_ok(model_build(&p, m, (struct model_options){.batch = batch}, &err), err);
    assert_ok(weights_check(w, p, m, &err), err);
    struct exec *e = new_exec(p, kernels[1]);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            float *numbers = xcalloc(1, value_bytes(&p->values[i]));
            weights_copy(w, &p->values[i], m, numbers);
            exec_write(e, i, numbers);
            free(numbers);
        }
    return e;
}

static void check_logits(const char *path, const char *answer, const char *set)
{
    struct safetensors s;
    struct error err;
    struct weights *w = open_weights(path);
    const struct config c = config_of(w, set);
    assert_ok(safetensors_read(&s, answer, &err), err);
    const struct tensor *tokens = safetensors_find(&s, "tokens"), *logits = safetensors_find(&s, "logits");
    assert_int_equal(tokens->dim[1], c.model.seq);
    struct exec *e = exec_of(w, &c.model, tokens->dim[0]);
    exec_write(e, exec_program(e)->tokens, tokens->data);
    exec_run(e, PHASE_DATA, PHASE_FORWARD);
    float *is = read_value(e, exec_program(e)->logits);
    const float *should = logits->data;
    for (size_t i = 0; i < tensor_bytes(logits) / sizeof *is; i++)
        if (!(fabsf(is[i] - should[i]) <= 1e-4f))
            fail_msg("%s: logit %zu is %.9g, and transformers has %.9g", path, i, (double)is[i], (double)should[i]);
    free(is);
    exec_free(e);
    safetensors_release(&s);
    weights_free(w);
}

static void test_logits(void **state)
{
    (void)state;
    check_logits(HF "gpt2", HF "gpt2.answer", NULL);
    check_logits(HF "gpt2/model.safetensors", HF "gpt2.answer", NULL);
    check_logits(HF "llama", HF "llama.answer", NULL);
    check_logits(HF "shards", HF "shards.answer", NULL);
    check_logits(HF "shards/model.safetensors.index.json", HF "shards.answer", NULL);
    check_logits(HF "nano.safetensors", HF "nano.answer", "model.heads=2");
    check_logits(HF "meta", HF "meta.answer", NULL);
    check_logits(HF "llama3", HF "llama3.answer", NULL);
}

static void test_what_it_is(void **state)
{
    (void)state;
    static const struct { const char *path, *title, *types; int files; bool tied; } cases[] = {
        {HF "gpt2", "GPT-2 of Hugging Face", "f32", 1, true},     {HF "llama", "LLaMA of Hugging Face", "f32", 1, false},
        {HF "shards", "LLaMA of Hugging Face", "bf16", 2, true},  {HF "nano.safetensors", "GPT-2 of nanoGPT", "f16", 1, true},
        {HF "meta", "LLaMA of Meta", "f32", 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weights *w = open_weights(cases[i].path);
        const struct config c = config_of(w, strstr(cases[i].path, "nano") ? "model.heads=2" : NULL);
        assert_string_equal(weights_title(w), cases[i].title);
        assert_string_equal(weights_types(w), cases[i].types);
        assert_int_equal(weights_files(w), cases[i].files);
        assert_int_equal(config_head_is_tied(&c.model), cases[i].tied);
        weights_free(w);
    }
    struct weights *w = open_weights(HF "llama");
    const struct config c = config_of(w, NULL);
    assert_true(c.model.rope_base == 500 && c.model.norm_eps == 1e-5 && c.model.kv_heads == 2 && c.model.heads == 4 && c.model.ffn == 24);
    assert_int_equal(c.model.rope_scaling, ROPE_PLAIN);
    weights_free(w);
    w = open_weights(HF "llama3");
    const struct config_model m = config_of(w, NULL).model;
    assert_true(m.rope_base == 500 && m.rope_factor == 4 && m.rope_low == 0.25 && m.rope_high == 2 && m.rope_context == 6);
    assert_int_equal(m.rope_scaling, ROPE_LLAMA3);
    weights_free(w);
}

/* rope_parameters beside rope_scaling: one of them counts, and all of it. */
static void test_angles_said_twice(void **state)
{
    (void)state;
#define LLAMA3 "{\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64, \"rope_theta\": 700.0}"
    static const struct { const char *said; enum rope_scaling scaling; double factor, base; } cases[] = {
        {"{\"rope_parameters\": " LLAMA3 "}", ROPE_LLAMA3, 8, 700},
        {"{\"rope_theta\": 600.0, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}}", ROPE_LINEAR, 2, 600},
        {"{\"rope_theta\": 600.0, \"rope_parameters\": " LLAMA3 ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}}", ROPE_LINEAR, 2, 600},
        {"{\"rope_theta\": 600.0, \"rope_parameters\": " LLAMA3 ", \"rope_scaling\": {\"rope_type\": \"default\"}}", ROPE_PLAIN, 0, 600},
        {"{\"rope_theta\": 600.0, \"rope_parameters\": {\"rope_type\": \"yarn\"}, \"rope_scaling\": " LLAMA3 "}", ROPE_LLAMA3, 8, 700},
        {"{\"rope_theta\": 600.0, \"rope_parameters\": " LLAMA3 ", \"rope_scaling\": {}}", ROPE_LLAMA3, 8, 700},
        {"{\"rope_theta\": 600.0, \"rope_parameters\": " LLAMA3 ", \"rope_scaling\": null}", ROPE_LLAMA3, 8, 700},
        {"{\"rope_parameters\": {}, \"rope_scaling\": {}}", ROPE_PLAIN, 0, 10000},
    };
#undef LLAMA3
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_facts f = {0};
        struct error err;
        json_t *j = json_loads(cases[i].said, 0, NULL);
        assert_non_null(j);
        assert_ok(family_llama.read_config(&f, j, "config.json", &err), err);
        assert_int_equal(f.rope_scaling, cases[i].scaling);
        assert_true(f.rope_factor == cases[i].factor && f.rope_base == cases[i].base);
        json_decref(j);
    }
}

/* Fewer positions than the table has: all of its rows are kept. */
static void test_shorter_samples(void **state)
{
    (void)state;
    struct weights *w = open_weights(HF "gpt2");
    const struct config c = config_of(w, "model.seq=5");
    assert_int_equal(c.model.seq, 5);
    assert_int_equal(c.model.positions, 12);
    exec_free(exec_of(w, &c.model, 1));
    weights_free(w);
}

/* Our names, as export takes them. */
static struct safetensors ours_of(const struct weights *w, const struct config_model *m, const char *path)
{
    struct safetensors s;
    struct error err;
    struct exec *e = exec_of(w, m, 1);
    const struct program *p = exec_program(e);
    struct tensor *list = xcalloc((size_t)p->n_values, sizeof *list);
    int n = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            list[n] = (struct tensor){.name = p->values[i].name, .type = TENSOR_F32, .rank = p->values[i].shape.rank, .data = read_value(e, i)};
            memcpy(list[n++].dim, p->values[i].shape.dim, sizeof p->values[i].shape.dim);
        }
    assert_ok(safetensors_write(path, list, n, NULL, NULL, &err), err);
    assert_ok(safetensors_read(&s, path, &err), err);
    for (int i = 0; i < n; i++)
        free(list[i].data);
    free(list);
    exec_free(e);
    return s;
}

static void check_round_trip(const char *path)
{
    char folder[] = "/tmp/hone-weights-XXXXXX", file[64];
    struct error err;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/ours", folder);
    struct weights *w = open_weights(path);
    const struct config c = config_of(w, NULL);
    struct safetensors ours = ours_of(w, &c.model, file);
    assert_ok(weights_export(folder, &c.model, NULL, &ours, &err), err);
    struct weights *again = open_weights(folder);
    assert_int_equal(again->n, w->n);
    for (int i = 0; i < w->n; i++) {
        const struct tensor *a = w->tensors[i].tensor, *b = weights_find(again, w->tensors[i].name);
        assert_non_null(b);
        assert_int_equal(tensor_bytes(a), tensor_bytes(b));
        assert_memory_equal(a->data, b->data, tensor_bytes(a));
    }
    const struct config d = config_of(again, NULL);
    assert_memory_equal(&c.model, &d.model, sizeof c.model);
    assert_ok(fs_remove_tree(folder, &err), err);
    safetensors_release(&ours);
    weights_free(again);
    weights_free(w);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip(HF "gpt2");
    check_round_trip(HF "llama");
    check_round_trip(HF "llama3");
}

static void test_names(void **state)
{
    (void)state;
    char name[NAME_MAX_BYTES];
    int64_t layer;
    name_fill(name, "h.#.ln_1.weight", 12);
    assert_string_equal(name, "h.12.ln_1.weight");
    assert_true(name_matches("h.#.ln_1.weight", name, &layer));
    assert_int_equal(layer, 12);
    assert_true(name_matches("wte.weight", "wte.weight", &layer) && layer == -1);
    assert_false(name_matches("h.#.ln_1.weight", "h..ln_1.weight", &layer));
    assert_false(name_matches("h.#.ln_1.weight", "h.01.ln_1.weight", &layer));
    assert_false(name_matches("h.#.ln_1.weight", "h.1.ln_1.weight2", &layer));
    assert_true(name_matches("h.#.x", "h.99999999999999999999.x", &layer));       /* too large to be a layer of ours */
    assert_true(layer > 1024);
}

/* Tensors by name and shape alone, and what is said of them for GPT-2 of 1 layer, width 4 and 6 words. */
static struct weights *made_of(const char *const *names, int n, float *numbers)
{
    struct weights *w = xcalloc(1, sizeof *w);
    struct error err;
    w->files = xcalloc(1, sizeof *w->files);
    w->files[0] = (struct safetensors){.n = n, .tensors = xcalloc((size_t)n, sizeof(struct tensor))};
    w->n_files = 1;
    snprintf(w->where, sizeof w->where, "made");
    for (int i = 0; i < n; i++) {
        const bool matrix = strstr(names[i], "c_") && strstr(names[i], "weight"), table = strstr(names[i], "wte") || strstr(names[i], "wpe") || strstr(names[i], "lm_");
        const int64_t wide = strstr(names[i], "attn.c_attn") ? 12 : strstr(names[i], "c_fc") ? 16 : 4, in = strstr(names[i], "mlp.c_proj") ? 16 : 4;
        w->files[0].tensors[i] = (struct tensor){.name = names[i], .type = TENSOR_F32, .rank = matrix || table ? 2 : 1,
                                                 .dim = {table ? 6 : matrix ? in : wide, table ? 4 : matrix ? wide : 0}, .data = numbers};
    }
    assert_ok(weights_index(w, &err), err);
    assert_ok(weights_choose_family(w, &err), err);
    return w;
}

static void expect_refusal(const char *const *names, int n, const char *text)
{
    float numbers[256] = {0};
    struct weights *w = made_of(names, n, numbers);
    struct program *p = NULL;
    struct error err;
    const struct config_model m = {.arch = ARCH_GPT, .vocab = 6, .dim = 4, .layers = 1, .heads = 2, .kv_heads = 2, .ffn = 16, .seq = 6,
                                   .rope_base = 10000, .norm_eps = 1e-5};
    assert_ok(model_build(&p, &m, (struct model_options){.batch = 1}, &err), err);
    const enum status st = weights_check(w, p, &m, &err);
    assert_int_equal(st, text ? BAD_INPUT : OK);
    if (text)
        assert_string_equal(err.text, text);
    program_free(p);
    weights_free(w);
}

enum { N = 17 };
static const char *const gpt2_names[N] = {"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.ln_1.bias", "h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias",
                                          "h.0.attn.c_proj.weight", "h.0.attn.c_proj.bias", "h.0.ln_2.weight", "h.0.ln_2.bias", "h.0.mlp.c_fc.weight",
                                          "h.0.mlp.c_fc.bias", "h.0.mlp.c_proj.weight", "h.0.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias", "h.0.attn.bias"};

static void test_what_does_not_fit(void **state)
{
    (void)state;
    const char *names[N];
    memcpy(names, gpt2_names, sizeof names);
    expect_refusal(names, N, NULL);
    names[2] = "h.0.ln1.weight";
    expect_refusal(names, N, "'made' does not fit this model: it lacks 'h.0.ln_1.weight' (nearest: 'h.0.ln1.weight'), it has too much: 'h.0.ln1.weight'");
    names[2] = "h.0.ln_1.weight";
    expect_refusal(names, N - 3, "'made' does not fit this model: it lacks 'ln_f.weight', 'ln_f.bias'");
    names[16] = "h.1.ln_1.weight";
    expect_refusal(names, N, "'made' does not fit this model: it has too much: 'h.1.ln_1.weight'");
    names[16] = "lm_head.weight";           /* tied: the embeddings once more */
    expect_refusal(names, N, NULL);
    names[16] = "h.0.attn.masked_bias";
    names[14] = "wte.c_.weight";
    expect_refusal(names, N, "'made' does not fit this model: it lacks 'ln_f.weight', it has too much: 'wte.c_.weight'");
}

/* A head in the file beside a config.json that ties it: own where it has other numbers, whatever they are stored as. */
static void test_heads(void **state)
{
    (void)state;
    static float numbers[256], others[256];
    static uint16_t halves[256], other_halves[256];
    static double doubles[256];
    static const struct { enum tensor_type type; void *data; int64_t rows; const char *said; bool tied, note; } cases[] = {
        {TENSOR_F32, numbers, 6, "{}", true, false},       {TENSOR_F32, others, 6, "{}", false, true},
        {TENSOR_F16, halves, 6, "{}", true, false},        {TENSOR_F16, other_halves, 6, "{}", false, true},
        {TENSOR_F64, doubles, 6, "{}", true, false},       {TENSOR_F32, numbers, 5, "{}", false, true},
        {TENSOR_F32, others, 6, "{\"tie_word_embeddings\": true}", false, true},
        {TENSOR_F32, others, 6, "{\"tie_word_embeddings\": false}", false, false},
        {TENSOR_F32, numbers, 6, "{\"tie_word_embeddings\": false}", false, false},
        {TENSOR_F32, numbers, 6, NULL, true, false},       {TENSOR_F16, halves, 6, NULL, true, false},  {TENSOR_F32, others, 6, NULL, false, false},
    };
    const char *names[N];
    memcpy(names, gpt2_names, sizeof names);
    names[16] = "lm_head.weight";
    for (int i = 0; i < 256; i++) {
        numbers[i] = others[i] = (float)(i % 2), doubles[i] = i % 2;
        halves[i] = other_halves[i] = i % 2 ? 0x3C00 : 0;
    }
    others[23] = 0.5f;                  /* the last of the head's */
    other_halves[23] = 0x3800;
    numbers[0] = others[0] = NAN, doubles[0] = (double)NAN;
    halves[0] = other_halves[0] = 0x7E00;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weights *w = made_of(names, N, numbers);
        struct tensor *head = &w->files[0].tensors[16];
        head->type = cases[i].type;
        head->data = cases[i].data;
        head->dim[0] = cases[i].rows;
        w->config = cases[i].said ? json_loads(cases[i].said, 0, NULL) : NULL;
        const struct config c = config_of(w, "model.heads=2");
        assert_int_equal(config_head_is_tied(&c.model), cases[i].tied);
        assert_int_equal(weights_note(w) != NULL, cases[i].note);
        weights_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),        cmocka_unit_test(test_what_it_is),  cmocka_unit_test(test_shorter_samples),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_names),       cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_heads),         cmocka_unit_test(test_angles_said_twice),
    };
    return cmocka_run_group_tests(tests, make_backends, free_backends);
}
