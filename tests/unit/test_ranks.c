/* Ranks of a run: PyTorch's numbers on several of them, states that they divide and a checkpoint has whole, a rank that is late, and sums that
 * travel while backward goes on. Ranks are threads here. */
#include <math.h>
#include <time.h>

#include "core/clock.h"
#include "support/rank_threads.h"
#include "support/torch.h"
#include "train/checkpoint.h"
#include "train/train_int.h"
#include "train/trial.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;         /* a process sets up one run at a time */

/* ---- PyTorch ---- */

enum { PARAMETERS_MOST = 64 };

/* Asserts are for the main thread: ranks leave what they saw. */
struct curve {
    const struct small_model *m;                /* of one rank: a sample */
    const struct safetensors *s;
    bool divided;
    double losses[MOST_RANKS][STEPS];
    float *final[PARAMETERS_MOST];              /* rank 0's weights at the end */
};

static struct program *step_of_rank(const struct curve *c, int rank, int ranks)
{
    struct optimizer_settings s = small_settings();
    struct program *p = small_forward(*c->m, 7);
    struct error err;
    s.ranks = (struct ranks_settings){.ranks = ranks, .shards = ranks, .accumulate = 1, .bucket_bytes = 8000, .rank = rank,
                                      .shard_optimizer = c->divided};
    if (pass_training_step(p, &s, &err) != OK)
        abort();
    return p;
}

static void train_rank(struct dist *d, void *argument)
{
    struct curve *c = argument;
    const int rank = dist_rank(d);
    const int64_t row = c->m->batch * c->m->config.seq;
    pthread_mutex_lock(&opening);
    struct backend *b = new_backend(1, false);
    b->comm = dist_comm(d);
    struct exec *e = new_exec(step_of_rank(c, rank, dist_size(d)), b);
    pthread_mutex_unlock(&opening);
    const struct program *p = exec_program(e);
    write_parameters(e, c->s);
    for (int step = 1; step <= STEPS; step++) {
        exec_write(e, p->tokens, batch_of(tensor(c->s, "", "tokens"), step) + rank * row);
        exec_write(e, p->targets, batch_of(tensor(c->s, "", "targets"), step) + rank * row);
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        c->losses[rank][step - 1] = read_named(e, "host.loss");
    }
    for (int i = 0, n = 0; i < p->n_values && rank == 0; i++)
        if (p->values[i].kind == VALUE_PARAMETER)
            c->final[n++] = read_value(e, i);
    exec_settle(e);
    dist_forget_op(d);
    exec_free(e);
    b->free(b);
}

static void check_weight(const struct value *v, const float *is, const struct tensor *t)
{
    const float *should = t->data;
    double largest = FLOOR;
    assert_fits(v, t);
    for (int64_t i = 0; i < shape_count(v->shape); i++)
        largest = fabs(should[i]) > largest ? fabs(should[i]) : largest;
    for (int64_t i = 0; i < shape_count(v->shape); i++)
        if (!(fabs((double)is[i] - should[i]) <= FINAL * largest))
            fail_msg("%s[%lld] is %.9g; PyTorch has %.9g", t->name, (long long)i, is[i], should[i]);
}

/* A sample for every rank; targets that are padding differ from sample to sample, so counts are uneven. */
static void check_torch_on_ranks(int model, bool divided)
{
    struct small_model one = small_models[model];
    const int ranks = (int)one.batch;
    one.batch = 1;
    struct safetensors s = read_fixture("train", one.name);
    const float *losses = tensor(&s, "", "losses")->data;
    struct world w = {.size = ranks, .patience_s = 60};
    struct curve c = {.m = &one, .s = &s, .divided = divided};
    on_ranks(&w, train_rank, &c);
    for (int r = 0; r < ranks; r++)
        for (int step = 0; step < STEPS; step++)
            assert_near(c.losses[r][step], losses[step], CURVE * losses[0], "the loss of a step");
    struct program *p = small_forward(one, 7);
    for (int i = 0, n = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            if (!is_key_bias(p->values[i].name))
                check_weight(&p->values[i], c.final[n], tensor(&s, "final.", p->values[i].name));
            free(c.final[n++]);
        }
    program_free(p);
    safetensors_release(&s);
}

static void test_ranks_train_as_pytorch_does(void **state)
{
    (void)state;
    for (int divided = 0; divided < 2; divided++) {
        check_torch_on_ranks(SMALL_GPT, divided);               /* three ranks */
        check_torch_on_ranks(SMALL_LLAMA, divided);             /* two */
    }
}

/* ---- checkpoints of what is divided ---- */

struct kept {
    struct config config;
    char out[64];
    struct { enum status st; struct error err; } save, resume;
    enum status lacks;
    char lacked[MOMENT_NAME];
    bool same;
};

static struct model_run *open_rank(const struct config *c, struct dist *d, struct error *err)
{
    struct model_run *r = xcalloc(1, sizeof *r);
    struct config own = *c;
    struct dataset *data;
    own.dist.comm = dist_comm(d);
    pthread_mutex_lock(&opening);
    enum status st = dataset_open(&data, &own, err);
    if (st == OK)
        st = model_run_open(r, &own, data, err);
    pthread_mutex_unlock(&opening);
    if (st == OK)
        return r;
    free(r);
    return NULL;
}

/* Saves the checkpoint's tensors once more, as step 2, without one of the moments. */
static void save_without_one(struct kept *k, struct checkpoint *ck)
{
    struct tensor *some = xcalloc((size_t)ck->state.n, sizeof *some);
    char path[CONFIG_PATH_MAX];
    struct error err;
    int n = 0, last = -1;
    for (int i = 0; i < ck->state.n; i++)
        last = !strncmp(ck->state.tensors[i].name, "adam.v.", 7) ? i : last;
    snprintf(k->lacked, sizeof k->lacked, "%s", ck->state.tensors[last].name);
    for (int i = 0; i < ck->state.n; i++)
        if (i != last)
            some[n++] = ck->state.tensors[i];
    k->lacks = checkpoint_save(path, k->out, 2, ck->weights.tensors, ck->weights.n, some, n, ck->manifest, 9, &err);
    free(some);
}

static void fill_moments(struct exec *e, float value)
{
    const struct program *p = exec_program(e);
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].slice) {
            const int64_t n = shape_count(p->values[i].shape);
            float *x = xcalloc((size_t)n, sizeof *x);
            for (int64_t j = 0; j < n; j++)
                x[j] = value * (float)(p->values[i].slice->first + j + i % 2);
            exec_write(e, i, x);
            free(x);
        }
}

static bool has_moments(struct exec *e, float value)
{
    const struct program *p = exec_program(e);
    bool same = true;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].slice) {
            float *x = read_value(e, i);
            for (int64_t j = 0; j < shape_count(p->values[i].shape); j++)
                same &= x[j] == value * (float)(p->values[i].slice->first + j + i % 2);
            free(x);
        }
    return same;
}

static enum status resume_rank(struct model_run *r, const char *out, struct dist *d, struct error *err)
{
    struct carried carried = {0};
    char path[CONFIG_PATH_MAX];
    int64_t step;
    enum status st = dist_rank(d) == 0 ? state_resume(r, out, &step, &carried, path, err) : OK;
    st = dist_agree(d, st, err);
    return st == OK ? ranks_share_state(r, err) : st;
}

static void keep_and_resume(struct dist *d, void *argument)
{
    struct kept *k = argument;
    struct error err;
    struct carried carried = {0};
    char path[CONFIG_PATH_MAX];
    const bool first = dist_rank(d) == 0;
    struct model_run *r = open_rank(&k->config, d, &err);
    if (!r)
        abort();
    fill_moments(r->train, 0.5f);
    enum status st = moments_collect(r, &err);
    if (st == OK && first)
        st = state_save(r, k->out, 1, &carried, path, &err);
    st = dist_agree(d, st, &err);
    fill_moments(r->train, 3);
    if (st == OK)
        st = resume_rank(r, k->out, d, &err);
    const bool same = st == OK && has_moments(r->train, 0.5f);
    struct checkpoint ck;
    if (first && st == OK && (st = checkpoint_load(&ck, k->out, &err)) == OK) {
        save_without_one(k, &ck);
        checkpoint_release(&ck);
    }
    st = dist_agree(d, st, &err);
    struct error why = {.status = OK};
    const enum status refused = st == OK ? resume_rank(r, k->out, d, &why) : OK;
    if (first) {
        k->save.st = st;
        k->save.err = err;
        k->same = same;
        k->resume.st = refused;
        k->resume.err = why;
    }
    model_run_close(r);
    free(r);
}

static void test_a_checkpoint_has_all_slices(void **state)
{
    static const char text[] = "model: {arch: gpt, dim: 24, layers: 2, heads: 3, seq: 12}\ndata: {chars: 6000, workers: 0}\n"
                               "train: {batch_size: 4, steps: 50}\nthreads: 1\ndist: {shard: optimizer}\neval: {every: 0}\n";
    (void)state;
    for (int ranks = 2; ranks <= 3; ranks++) {
        static struct kept k;
        struct error err;
        struct world w = {.size = ranks, .patience_s = 60};
        const char *batch = "train.batch_size=6";
        k = (struct kept){.out = "/tmp/hone-slices-XXXXXX"};
        assert_non_null(mkdtemp(k.out));
        assert_ok(config_parse(&k.config, "t.yaml", text, sizeof text - 1, &batch, 1, &err), err);
        on_ranks(&w, keep_and_resume, &k);
        assert_ok(k.save.st, k.save.err);
        assert_true(k.same);
        assert_int_equal(k.lacks, OK);
        assert_int_equal(k.resume.st, BAD_INPUT);
        assert_non_null(strstr(k.resume.err.text, "has no tensor '"));
        assert_non_null(strstr(k.resume.err.text, k.lacked));
        char remove[96];
        snprintf(remove, sizeof remove, "rm -rf %s", k.out);
        assert_int_equal(system(remove), 0);
    }
}

/* ---- memory ---- */

/* A rank of four needs three quarters of the moments less, in the plan that refuses what does not fit and that hone doctor shows. */
static void test_slices_are_in_the_plan(void **state)
{
    static const char text[] = "model: {arch: gpt, dim: 128, layers: 2, heads: 4, seq: 12, vocab: 100}\ndata: {chars: 6000, workers: 0}\n"
                               "train: {batch_size: 4, steps: 50}\nthreads: 1\n";
    static const char *const words[] = {"dist.shard=none", "dist.shard=optimizer"};
    struct comm four = {.rank = 1, .size = 4};
    struct exec_memory m[2];
    double parameters = 0, planned[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct config c;
        struct error err;
        struct step_plan plan;
        struct program *p;
        struct backend *b = new_backend(1, false);
        assert_ok(config_parse(&c, "t.yaml", text, sizeof text - 1, (const char **)&words[k], 1, &err), err);
        c.dist.comm = &four;
        assert_ok(train_step_program(&p, &c, 50, NULL, &err), err);
        assert_ok(exec_plan(&m[k], p, b, &err), err);
        parameters = (double)program_parameters(p);
        assert_ok(train_plan_rank(&plan, &c, 4, 1, &err), err);
        planned[k] = plan.bytes;
        program_free(p);
        b->free(b);
    }
    assert_near((double)m[0].state, 8 * parameters, 64, "the state of a rank that has all");
    assert_near((double)m[1].state, 8 * parameters / 4, 0.01 * 8 * parameters, "the state of a rank that has a quarter");
    assert_true(planned[0] - planned[1] >= 0.98 * 8 * parameters * 3 / 4);
}

/* ---- a rank that is late ---- */

struct late {
    const struct config *config;
    int who, ms;
    uint64_t bits[MOST_RANKS];
    struct ranks_times times[MOST_RANKS];
    int64_t waited[MOST_RANKS];
    struct gpu_state gpus[MOST_RANKS][MOST_RANKS];      /* as each rank was told */
};

/* Rank 2 knows nothing of its GPU. */
static enum status tell_times(struct late *l, struct dist *d, double seconds, struct error *err)
{
    const int rank = dist_rank(d);
    struct ranks_own own = {.seconds = seconds, .wait_s = (double)l->waited[rank] * 1e-9, .steps = 4, .asks = rank == 0, .gpu = gpu_unknown()};
    if (rank != 2)
        own.gpu.busy_percent = 10 * rank;
    return ranks_gather_times(d, &own, &l->times[rank], l->gpus[rank], err);
}

static void train_late(struct dist *d, void *argument)
{
    struct late *l = argument;
    struct config c = *l->config;
    struct trial *t = NULL;
    struct trial_step step;
    struct error err;
    const int rank = dist_rank(d);
    c.dist.comm = dist_comm(d);
    pthread_mutex_lock(&opening);
    enum status st = trial_open(&t, &c, NULL, NULL, &err);
    pthread_mutex_unlock(&opening);
    const int64_t before = dist_wait_ns(d);
    const double start = clock_s();
    for (int i = 0; i < 4 && st == OK; i++) {
        if (rank == l->who)
            nanosleep(&(struct timespec){l->ms / 1000, l->ms % 1000 * 1000000L}, NULL);
        st = trial_step(t, &step, &err);
    }
    l->waited[rank] = dist_wait_ns(d) - before;
    float unread;
    const bool refused = st == OK && trial_gradient(t, 0, &unread, &err) == CANNOT && strstr(err.text, "dist.shard is optimizer");
    if (st == OK)
        st = tell_times(l, d, clock_s() - start, &err);
    l->bits[rank] = st == OK && refused ? trial_fingerprint(t) : 0;
    trial_free(t);
}

static bool is_named(const struct late *l)
{
    bool named = true;
    for (int r = 0; r < 4; r++)
        named &= l->times[r].compare && l->times[r].slowest == l->who && (r == l->who || l->waited[r] > l->waited[l->who]);
    return named;
}

static uint64_t run_late(struct late *l)
{
    struct world w = {.size = 4, .patience_s = 60};
    on_ranks(&w, train_late, l);
    for (int r = 0; r < 4; r++)
        assert_true(l->bits[r] != 0 && l->bits[r] == l->bits[0]);
    for (int i = 0; i < 16; i++) {
        const double busy = l->gpus[i / 4][i % 4].busy_percent;
        assert_true(i % 4 == 2 ? isnan(busy) : busy == 10 * (i % 4));
    }
    return l->bits[0];
}

/* The others wait for it, it is named, and nothing else changes. On a busy machine another one may be later still: then this one sleeps longer. */
static void test_a_late_rank_is_named(void **state)
{
    static const char text[] = "model: {arch: gpt, dim: 24, layers: 2, heads: 3, seq: 12}\ndata: {chars: 6000, workers: 0}\n"
                               "train: {batch_size: 8, steps: 50}\noptimize: {autotune: off}\nthreads: 1\ndist: {shards: 4, shard: optimizer}\n";
    static struct late l;
    struct config c;
    struct error err;
    (void)state;
    assert_ok(config_parse(&c, "t.yaml", text, sizeof text - 1, NULL, 0, &err), err);
    l = (struct late){.config = &c, .who = -1};
    const uint64_t bits = run_late(&l);
    for (int who = 1; who < 4; who += 2) {
        bool named = false;
        for (int ms = 100; ms <= 6400 && !named; ms *= 4) {
            l = (struct late){.config = &c, .who = who, .ms = ms};
            assert_true(run_late(&l) == bits);
            named = is_named(&l);
        }
        assert_true(named);
    }
}

/* ---- while backward goes on ---- */

struct stamps { struct comm comm; int starts, waits; int64_t started[64], waited[64]; };

static void stamp_start(struct comm *c, float *data, int64_t n)
{
    struct stamps *s = (struct stamps *)c;
    (void)data, (void)n;
    s->started[s->starts++] = clock_ns();
}

static bool stamp_wait(struct comm *c, const float *data)
{
    struct stamps *s = (struct stamps *)c;
    (void)data;
    s->waited[s->waits++] = clock_ns();
    return true;
}

/* From the events of a step: every sum but the last was started while ops of backward were still to come, and is waited for after all of them. */
static void test_sums_travel_while_backward_goes_on(void **state)
{
    struct stamps s = {.comm = {.size = 2, .start = stamp_start, .wait = stamp_wait}};
    struct optimizer_settings settings = small_settings();
    struct backend *b = new_backend(1, false);
    (void)state;
    settings.ranks = (struct ranks_settings){.ranks = 2, .shards = 2, .accumulate = 1, .bucket_bytes = 4000};
    b->comm = &s.comm;
    struct exec *e = new_exec(small_training(small_models[SMALL_GPT], &settings), b);
    const struct program *p = exec_program(e);
    const struct small_batch batch = random_batch(&small_models[SMALL_GPT], 1);
    exec_measure(e, true);
    write_batch(e, &batch);
    exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
    int64_t last_begins = 0, last_ends = 0, early = 0, all = 0;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].phase == PHASE_BACKWARD && p->ops[i].kind != OP_REDUCE_START) {
            last_begins = exec_times(e, i)->start_ns;
            last_ends = exec_times(e, i)->end_ns;
        }
    for (int i = 0, n = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == OP_REDUCE_START) {
            const int64_t bytes = (int64_t)value_bytes(&p->values[p->ops[i].out[0]]);
            all += bytes;
            early += s.started[n++] < last_begins ? bytes : 0;
        }
    assert_true(s.starts > 4 && s.waits == s.starts);
    assert_true((double)early >= 0.8 * (double)all);
    for (int i = 0; i < s.waits; i++)
        assert_true(s.waited[i] >= last_ends);
    exec_free(e);
    b->free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_train_as_pytorch_does), cmocka_unit_test(test_a_checkpoint_has_all_slices),
        cmocka_unit_test(test_slices_are_in_the_plan), cmocka_unit_test(test_a_late_rank_is_named), cmocka_unit_test(test_sums_travel_while_backward_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
