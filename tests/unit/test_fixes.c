/* Fixes as code: for the user's optimizer, device and place, at the factor that is promised; and every one of them is Python. */
#include "unit/trace_models.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "analyze/traced/fix.h"
#include "watch/watch.h"

static const char *text_for(struct arena *a, const char *rule, struct fix_facts f) { return fix_text(a, rule, &f); }

static void a_fix_names_the_users_optimizer(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *sgd = text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "SGD"});
    assert_non_null(strstr(sgd, "torch.optim.SGD(model.parameters(), lr=lr, fused=True)"));
    assert_null(strstr(sgd, "AdamW"));
    const char *rms = text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "RMSprop"});
    assert_non_null(strstr(rms, "torch.optim.RMSprop(model.parameters(), lr=lr, foreach=True)"));       /* it has no fused form */
    assert_null(strstr(rms, "fused=True"));
    const char *own = text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "Lion"});
    assert_non_null(strstr(own, "Lion"));
    assert_null(strstr(own, "torch.optim.Lion"));
    const char *graph = text_for(&a, "launch-bound", (struct fix_facts){.optimizer = "SGD"});
    assert_null(strstr(graph, "capturable"));                                                             /* SGD takes no such argument */
    assert_non_null(strstr(text_for(&a, "launch-bound", (struct fix_facts){.optimizer = "Adam"}), "torch.optim.Adam(model.parameters(), lr=lr, capturable=True)"));
    arena_release(&a);
}

static void a_fix_never_takes_another_algorithm(void **state)
{
    (void)state;
    static const char *const names[] = {"Lion", "LBFGS", "SparseAdam", "Muon"}, *const rules[] = {"unfused-optimizer", "launch-bound", "host-bound"};
    struct arena a = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
            const char *fix = text_for(&a, rules[k], (struct fix_facts){.optimizer = names[i]});
            assert_true(*fix && !strstr(fix, "AdamW") && !strstr(fix, "alpha=-lr"));
            assert_null(strstr(fix, "not of torch.optim"));
        }
    arena_release(&a);
}

static void a_form_is_for_the_device(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *gpu = text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "Adagrad"});
    assert_non_null(strstr(gpu, "torch.optim.Adagrad(model.parameters(), lr=lr, foreach=True)"));
    assert_null(strstr(gpu, "fused=True"));
    assert_non_null(strstr(text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "Adagrad", .device = "cpu"}), "fused=True"));
    assert_non_null(strstr(text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "Adam"}), "fused=True)   # or foreach=True"));
    assert_null(strstr(text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "Adam", .device = "cpu"}), "foreach"));
    assert_null(strstr(text_for(&a, "launch-bound", (struct fix_facts){.optimizer = "Adagrad"}), "CUDAGraph()"));       /* it cannot be captured */
    assert_non_null(strstr(text_for(&a, "unfused-optimizer", (struct fix_facts){.optimizer = "Adafactor"}), "torch.optim.Adafactor(model.parameters(), lr=lr, foreach=True)"));
    arena_release(&a);
}

static void a_step_is_captured_after_a_warm_up_beside_it(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *fix = text_for(&a, "launch-bound", (struct fix_facts){0});
    const char *side = strstr(fix, "torch.cuda.stream(side)"), *capture = strstr(fix, "torch.cuda.graph(graph)");
    assert_true(side && capture && side < capture);
    assert_non_null(strstr(fix, "capturable=True"));
    arena_release(&a);
}

static void a_fix_names_the_device_and_the_place(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *fix = text_for(&a, "no-mixed-precision", (struct fix_facts){.device = "xpu", .place = "model.py(12): forward (GPT_0)", .tf32 = true});
    assert_non_null(strstr(fix, "torch.autocast('xpu'"));
    assert_null(strstr(fix, "'cuda'"));
    assert_int_equal(strncmp(fix, "# in model.py(12): forward (GPT_0)\n", 35), 0);
    assert_null(strstr(text_for(&a, "recompute", (struct fix_facts){.place = "a\nimport os"}), "import os"));
    arena_release(&a);
}

static void backward_twice(struct model *m)
{
    model_backward(m);
    model_forward(m);
    model_backward(m);
}

static void the_code_is_for_the_batch_that_is_promised(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.kernel_us = 4;
    m.backward = backward_twice;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "small-batch");
    int promised = 0, written = 0, accumulated = 0;
    const char *at = strstr(f->evidence, "at "), *size = strstr(f->fix, "batch_size="), *part = strstr(f->fix, "accumulate // ");
    assert_true(at && size && part);
    assert_int_equal(sscanf(at, "at %d times the batch", &promised), 1);
    assert_int_equal(sscanf(size, "batch_size=%d * B", &written), 1);
    assert_int_equal(sscanf(part, "accumulate // %d", &accumulated), 1);
    assert_true(promised >= 2 && promised == written && promised == accumulated);
    judged_release(&j);
}

static void one_backward_for_an_update_has_no_number_to_lower(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.kernel_us = 4;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "small-batch");
    assert_non_null(strstr(f->fix, " * B)"));
    assert_null(strstr(f->fix, "accumulate"));
    judged_release(&j);
}

/* ---- without a device ---- */

static void a_frozen_network_stays_in_f32_on_a_cpu(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *gpu = text_for(&a, "eval-share", (struct fix_facts){.frozen = true}), *cpu = text_for(&a, "eval-share", (struct fix_facts){.frozen = true, .device = "cpu"});
    assert_non_null(strstr(gpu, "with torch.inference_mode(), torch.autocast('cuda', dtype=torch.bfloat16):\n"));
    assert_non_null(strstr(cpu, "with torch.inference_mode():\n"));
    assert_non_null(strstr(cpu, "compute its outputs once"));
    assert_true(!strstr(cpu, "autocast") && !strstr(cpu, "16"));
    arena_release(&a);
}

static void code_for_a_cpu_knows_no_device(void **state)
{
    (void)state;
    static const char *const rules[] = {"data-stall", "tiny-host-tensors", "host-bound"};
    struct arena a = {0};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int k = 0; k < 4; k++) {
            const char *fix = text_for(&a, rules[i], (struct fix_facts){.device = "cpu", .forward_only = k % 2, .holder = k / 2 ? "augment" : NULL});
            if (strstr(fix, "pin_memory") || strstr(fix, "num_workers=8") || strstr(fix, "device"))
                fail_msg("%s: %s", rules[i], fix);
        }
    const char *loader = text_for(&a, "data-stall", (struct fix_facts){.device = "cpu"});
    assert_true(strstr(loader, "num_workers=spare") && strstr(loader, "# spare: cores"));
    assert_non_null(strstr(text_for(&a, "data-stall", (struct fix_facts){0}), "num_workers=8, prefetch_factor=4,\n                    persistent_workers=True, pin_memory=True)"));
    arena_release(&a);
}

/* Work that was launched and not recorded had a device. */
static void a_device_that_was_not_recorded_is_there(void **state)
{
    (void)state;
    for (int launches = 0; launches < 2; launches++) {
        struct traced t = traced_new();
        for (int i = 0; i < 4; i++) {
            traced_step_begin(&t, i);
            traced_at(&t, EVENT_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t.now_us, 3000);
            traced_idle(&t, 3010);
            for (int k = 0; k < 20; k++) {
                if (launches)
                    traced_at(&t, EVENT_RUNTIME, "cudaLaunchKernel", t.now_us + 2, 5);
                traced_op(&t, "aten::mm", 200);
            }
            traced_step_end(&t);
        }
        struct judged j = trace_judge(t.trace, 0);
        assert_int_equal(strstr(assert_found(&j, "data-stall")->fix, "pin_memory=True") != NULL, launches);
        judged_release(&j);
    }
}

/* One for each core is what runs already. */
static void threads_that_wait_for_each_other_become_fewer(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *known = text_for(&a, "cpu-oversubscribed", (struct fix_facts){.device = "cpu", .threads = 64}), *unknown = text_for(&a, "cpu-oversubscribed", (struct fix_facts){.device = "cpu"});
    assert_int_equal(strncmp(known, "torch.set_num_threads(32)     # fewer than the 64 that run: try half of them, and 1\n", 84), 0);
    assert_non_null(strstr(unknown, "torch.get_num_threads() // 2"));
    assert_non_null(strstr(unknown, "try half of them, and 1"));
    assert_true(!strstr(known, "os.") && !strstr(unknown, "os."));      /* what is not imported */
    assert_non_null(strstr(text_for(&a, "cpu-oversubscribed", (struct fix_facts){.device = "cpu", .threads = 2}), "set_num_threads(1)     # fewer than the 2 that run\n"));
    arena_release(&a);
}

/* ---- where ---- */

static void loop_in_a_frame(struct model *m)
{
    const double from = m->t.now_us;
    for (int i = 0; i < 24; i++) {
        model_op(m, "mul_", "[[512, 512], []]", "vectorized_elementwise_kernel", 1, NULL);
        model_op(m, "addcmul_", "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", 1, NULL);
        model_op(m, "addcdiv_", "[[512, 512], [512, 512]]", "vectorized_elementwise_kernel", 1, NULL);
    }
    const double us = m->t.now_us - from;
    traced_at(&m->t, EVENT_PYTHON, "nn.Module: Trainer_0", from - 4, us + 8);
    traced_at(&m->t, EVENT_PYTHON, "/home/me/train.py(40): update", from - 3, us + 6);
    traced_at(&m->t, EVENT_PYTHON, "/opt/src/pytorch/torch/optim/adamw.py(200): step", from - 2, us + 4);
    traced_at(&m->t, EVENT_PYTHON, "torch/profiler/profiler.py(787): step", from - 1, us + 2);
}

static void the_place_is_the_users_frame(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.optimizer = loop_in_a_frame;
    struct judged j = model_judge(&m, 0);
    const struct finding *f = assert_found(&j, "unfused-optimizer");
    assert_string_equal(f->where, "aten::mul_, in /home/me/train.py(40): update (Trainer_0)");
    assert_int_equal(strncmp(f->fix, "# in /home/me/train.py(40): update (Trainer_0)\n", 47), 0);
    assert_non_null(strstr(f->fix, "torch.optim.AdamW("));          /* as its range is named */
    judged_release(&j);
}

static void the_profilers_own_frames_are_nobodys_place(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m, i);
        for (int k = 0; k < 20; k++)
            traced_run(&m, "aten::mm", 20, "gemm", 100);
        traced_wait(&m, "cudaStreamSynchronize");
        traced_at(&m, EVENT_PYTHON, "torch/utils/data/sampler.py(9): __iter__", m.now_us, 5000);
        traced_at(&m, EVENT_PYTHON, "torch/profiler/profiler.py(787): step", m.now_us + 1, 4990);
        traced_idle(&m, 5000);
        traced_step_end(&m);
    }
    struct judged j = trace_judge(m.trace, 0);
    const struct finding *f = assert_found(&j, "host-bound");
    assert_null(strstr(f->where, "profiler.py"));
    assert_null(strstr(f->evidence, "profiler.py"));
    judged_release(&j);
}

static void nothing(struct model *m) { (void)m; }

static void read_output(struct model *m)
{
    model_begin(m, "item", "[[]]");
    traced_copy(&m->t, "Memcpy DtoH (Device -> Pageable)", 4, 2);
    traced_wait(&m->t, "cudaStreamSynchronize");
    model_end(m);
}

/* Steps of a model that is served: no loss, no gradients, no optimizer. */
static struct trace *serve(const char *types)
{
    struct model m = model_new(HOST_BOUND);
    m.no_grad = true;
    m.layers = 8;
    m.kernel_us = 4;
    m.types = types;
    for (int i = 0; i < 4; i++) {
        traced_step_begin(&m.t, i);
        model_forward(&m);
        read_output(&m);
        traced_idle(&m.t, 500);
        traced_step_end(&m.t);
    }
    return m.t.trace;
}

static const char *const of_training[] = {"backward", "optimizer", "accumulate", "train", "loss", "zero_grad", "dropout"};

static void a_program_that_only_goes_forward_gets_no_code_of_training(void **state)
{
    (void)state;
    struct judged j = trace_judge(serve(F32), 0);
    assert_found(&j, "small-batch");
    assert_found(&j, "launch-bound");
    assert_found(&j, "host-sync");
    for (int i = 0; i < j.d.n_findings; i++)
        for (size_t k = 0; k < sizeof of_training / sizeof *of_training; k++)
            if (strstr(j.d.findings[i].fix, of_training[k]))
                fail_msg("%s says '%s': %s", j.d.findings[i].rule, of_training[k], j.d.findings[i].fix);
    judged_release(&j);
    struct model m = model_new(HOST_BOUND);         /* the backward of a graph is in no op, but the optimizer is there */
    m.kernel_us = 4;
    m.no_grad = true;
    m.backward = nothing;
    struct judged k = model_judge(&m, 0);
    const char *fix = assert_found(&k, "small-batch")->fix;
    assert_true(strstr(fix, "batch_size=") && !strstr(fix, "requests"));        /* which only a server has */
    judged_release(&k);
}

static void all_that_may_be_found_in_a_forward_pass_has_code_for_it(void **state)
{
    (void)state;
    static const char *const rules[] = {"host-sync", "no-mixed-precision", "no-flash-attention", "pageable-copies", "tiny-host-tensors", "data-stall", "small-batch",
                                        "launch-bound", "host-bound", "exposed-comm", "memory-limit", "small-collectives", "low-occupancy"};
    static const char *const collectives[] = {NULL, "all_reduce", "all_gather", "all_to_all"};
    struct arena a = {0};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (int k = 0; k < 8; k++) {
            const char *fix = text_for(&a, rules[i], (struct fix_facts){.forward_only = true, .times = 4, .collective = collectives[k % 4], .no_bf16 = k / 4 % 2});
            for (size_t w = 0; w < sizeof of_training / sizeof *of_training; w++)
                if (strstr(fix, of_training[w]))
                    fail_msg("%s says '%s': %s", rules[i], of_training[w], fix);
        }
    arena_release(&a);
}

static void do_not_clip(struct model *m) { traced_idle(&m->t, 1); }

/* Clipping is for programs that clip: it changes what is learned. */
static void the_code_clips_where_the_program_does(void **state)
{
    (void)state;
    for (int clips = 0; clips < 2; clips++) {
        struct model m = model_new(HOST_BOUND);
        m.optimizer = loop_in_a_frame;
        m.after_backward = clips ? NULL : do_not_clip;
        struct judged j = model_judge(&m, 0);
        assert_int_equal(strstr(assert_found(&j, "unfused-optimizer")->fix, "clip_grad_norm_") != NULL, clips);
        judged_release(&j);
    }
}

/* ---- what a trial measured ---- */

/* The trial of a program that tried the fix of a rule twice. */
static struct json_t *trial_of(const char *rule, const char *state, double speedup)
{
    return json_pack("{s:[{s:s,s:s,s:s,s:f,s:f,s:f},{s:s,s:s,s:s}]}", "switches", "name", "fused-optimizer", "rule", rule, "state", state, "speedup", speedup,
                     "low", speedup - 0.02, "high", speedup + 0.02, "name", "foreach-optimizer", "rule", rule, "state", "not tried");
}

static bool is_planned(const struct diagnosis *d, const char *rule)
{
    for (int p = 0; p < d->n_phases; p++)
        for (int i = 0; i < d->phases[p].n; i++)
            if (!strcmp(d->findings[d->phases[p].findings[i]].rule, rule))
                return true;
    return false;
}

static void what_was_measured_takes_the_place_of_the_prediction(void **state)
{
    (void)state;
    static const char rule[] = "unfused-optimizer";
    for (int won = 0; won < 2; won++) {
        struct model m = model_new(HOST_BOUND);
        m.optimizer = loop_in_a_frame;
        struct judged j = model_judge(&m, 0);
        struct watched w = {.trial = trial_of(rule, won ? "kept" : "no gain", won ? 4 : 0.99)};
        const double predicted = assert_found(&j, rule)->speedup, all = j.d.phases[j.d.n_phases - 1].speedup;
        assert_true(predicted > 1.05 && is_planned(&j.d, rule) && !strncmp(j.d.first_action, rule, strlen(rule)));
        watched_take_measured(&j.d, &w);
        const struct finding *f = assert_found(&j, rule);
        assert_near(f->speedup, won ? 4 : 1, 1e-9, "as measured");
        assert_true(f->share >= 1 - 1 / f->speedup - 1e-9);             /* it takes part in what it wins, at least */
        assert_near(f->predicted, predicted, 1e-9, "as predicted");
        assert_non_null(strstr(f->evidence, won ? "fused-optimizer wins, 4.000×" : "fused-optimizer wins nothing, 0.990×"));
        assert_int_equal(is_planned(&j.d, rule), won);
        assert_int_equal(!strncmp(j.d.first_action, rule, strlen(rule)), won);
        assert_true(!j.d.n_phases || j.d.phases[j.d.n_phases - 1].speedup <= (won ? fmax(all, 4) : all));
        watched_release(&w);
        judged_release(&j);
    }
}

static void what_failed_a_gate_measured_nothing(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.optimizer = loop_in_a_frame;
    struct judged j = model_judge(&m, 0);
    struct watched w = {.trial = trial_of("unfused-optimizer", "failed", 0.99)};
    watched_take_measured(&j.d, &w);
    assert_true(assert_found(&j, "unfused-optimizer")->predicted <= 0 && assert_found(&j, "unfused-optimizer")->speedup > 1.05);
    watched_release(&w);
    judged_release(&j);
}

/* ---- how sure a finding is ---- */

static void a_finding_says_what_would_make_it_surer(void **state)
{
    (void)state;
    struct model m = model_new(HOST_BOUND);
    m.optimizer = loop_in_a_frame;
    struct judged j = model_judge(&m, model_step_us(&m));
    const struct finding *f = assert_found(&j, "unfused-optimizer");
    assert_true(f->raise && !strstr(f->raise, "--step-ms") && !strstr(f->raise, "steps"));      /* it is known, and they are four */
    int high = 0;
    for (int i = 0; i < j.d.n_findings; i++)
        high += !strcmp(j.d.findings[i].confidence, "high") && !j.d.findings[i].raise;
    assert_true(high > 0);
    judged_release(&j);
    struct model once = model_new(HOST_BOUND);
    once.steps = 2;
    once.optimizer = loop_in_a_frame;
    struct judged k = model_judge(&once, 0);
    f = assert_found(&k, "unfused-optimizer");
    assert_string_not_equal(f->confidence, "high");
    assert_non_null(strstr(f->raise, "more steps"));
    assert_non_null(strstr(f->raise, "--step-ms"));
    judged_release(&k);
}

static void a_trace_without_marks_is_sure_of_little(void **state)
{
    (void)state;
    struct traced m = traced_new();
    for (int k = 0; k < 200; k++)
        traced_run(&m, "aten::mm", 40, "gemm", 5);
    struct judged j = trace_judge(m.trace, 0);
    assert_true(j.d.n_findings > 0);
    for (int i = 0; i < j.d.n_findings; i++) {
        assert_string_equal(j.d.findings[i].confidence, "low");
        assert_non_null(strstr(j.d.findings[i].raise, "prof.step()"));
    }
    judged_release(&j);
}

/* ---- every one of them is Python ---- */

static void put_fix(FILE *to, const char *rule, const char *fix)
{
    fprintf(to, "%s%c%s%c", rule, '\0', fix, '\0');
}

static void put_all(FILE *to, struct arena *a)
{
    static const char *const optimizers[] = {NULL, "SGD", "RMSprop", "Lion", "Adagrad", "LBFGS"}, *const devices[] = {NULL, "xpu", "mtia", "cpu"};
    static const char *const collectives[] = {NULL, "all_reduce", "all_gather", "all_to_all", "send_recv"};
    for (const struct rule_text *t = rule_texts; t->id; t++) {
        put_fix(to, t->id, t->fix_pytorch);
        for (int i = 0; i < 64; i++) {      /* every choice with some of the others */
            const struct fix_facts f = {.optimizer = optimizers[i % 6], .device = devices[i / 4 % 4], .place = i % 3 ? "train.py(3): step" : NULL,
                                        .maker = (enum maker)(i / 2 % 4), .no_bf16 = i % 5 == 0, .tf32 = i % 7 < 3, .compiled = i % 3 == 1,
                                        .some_graphs = i % 11 == 0, .planes = i % 2, .frozen = i % 3 == 0, .clips = i % 5 < 2, .synchronizes = i % 9 < 4, .forward_only = i % 7 > 3, .collective = collectives[i % 5], .mask = (enum scores_mask)(i / 3 % 4), .holder = i % 4 == 2 ? "train.py(7): augment" : NULL,
                                        .times = 1 << i % 5, .accumulates = i % 3 == 2, .threads = i % 6};
            put_fix(to, t->id, fix_text(a, t->id, &f));
        }
    }
}

static void every_fix_compiles_as_python(void **state)
{
    (void)state;
    if (system("python3 -c 'import ast' 2>/dev/null") != 0) {
        print_message("skipped: there is no python3\n");
        skip();
    }
    struct arena a = {0};
    char path[] = "/tmp/hone-fixes-XXXXXX", command[512];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *to = fdopen(fd, "w");
    put_all(to, &a);
    assert_int_equal(fclose(to), 0);
    snprintf(command, sizeof command, "python3 '%s/../unit/check-fixes.py' '%s'", HONE_FIXTURES, path);
    const int rc = system(command);
    unlink(path);
    arena_release(&a);
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fix_names_the_users_optimizer),
        cmocka_unit_test(a_fix_never_takes_another_algorithm),
        cmocka_unit_test(a_form_is_for_the_device),
        cmocka_unit_test(a_program_that_only_goes_forward_gets_no_code_of_training),
        cmocka_unit_test(all_that_may_be_found_in_a_forward_pass_has_code_for_it),
        cmocka_unit_test(the_code_clips_where_the_program_does),
        cmocka_unit_test(a_step_is_captured_after_a_warm_up_beside_it),
        cmocka_unit_test(a_fix_names_the_device_and_the_place),
        cmocka_unit_test(the_code_is_for_the_batch_that_is_promised),
        cmocka_unit_test(one_backward_for_an_update_has_no_number_to_lower),
        cmocka_unit_test(a_frozen_network_stays_in_f32_on_a_cpu),
        cmocka_unit_test(threads_that_wait_for_each_other_become_fewer),
        cmocka_unit_test(code_for_a_cpu_knows_no_device),
        cmocka_unit_test(a_device_that_was_not_recorded_is_there),
        cmocka_unit_test(the_place_is_the_users_frame),
        cmocka_unit_test(the_profilers_own_frames_are_nobodys_place),
        cmocka_unit_test(what_was_measured_takes_the_place_of_the_prediction),
        cmocka_unit_test(what_failed_a_gate_measured_nothing),
        cmocka_unit_test(a_finding_says_what_would_make_it_surer),
        cmocka_unit_test(a_trace_without_marks_is_sure_of_little),
        cmocka_unit_test(every_fix_compiles_as_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
