/* Steps that are divided over shards and ranks: the program, and that 1, 2 and 4 ranks give the bits of one. Ranks are threads here. */
#include "config/config.h"
#include "support/models.h"
#include "support/rank_threads.h"
#include "train/trial.h"

/* ---- the program ---- */

static struct program *divided(struct ranks_settings ranks)
{
    struct optimizer_settings s = small_settings();
    s.ranks = ranks;
    return small_training(small_models[SMALL_GPT], &s);
}

static int count(const struct program *p, enum op_kind kind)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += p->ops[i].kind == kind;
    return n;
}

enum { MOST_LAYERS = 16 };

static int writer_of(const struct program *p, value_id v)
{
    int i = 0;
    while (i < p->n_ops && p->ops[i].out[0] != v && (p->ops[i].n_out < 2 || p->ops[i].out[1] != v) &&
           (p->ops[i].n_out < 3 || p->ops[i].out[2] != v))
        i++;
    return i;
}

/* A bucket starts behind the last of its gradients and before backward ends, in the last micro-batch; the norm comes after the waits. */
static void test_communication_is_in_the_program(void **state)
{
    struct program *p = divided((struct ranks_settings){.ranks = 2, .shards = 2, .accumulate = 1, .bucket_bytes = 4000});
    int starts = 0, parameters = 0, waited = 0;
    (void)state;
    for (int i = 0; i < p->n_values; i++)
        parameters += p->values[i].kind == VALUE_PARAMETER;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_REDUCE_START) {
            assert_int_equal(op->phase, PHASE_BACKWARD);
            assert_true(op->last);
            for (int k = 0; starts > 0 && k < op->attrs.parts; k++)
                assert_true(writer_of(p, op->in[k]) < i);
            starts++;
        }
        if (op->kind == OP_REDUCE_WAIT) {
            assert_int_equal(op->phase, PHASE_COMMUNICATE);
            waited += op->attrs.parts;
        }
    }
    assert_true(starts > 4);
    assert_int_equal(count(p, OP_REDUCE_WAIT), starts);
    assert_int_equal(waited, parameters + 3);                   /* count, loss, stop */
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            const int at = writer_of(p, p->values[i].grad);
            assert_true(at == p->n_ops || p->ops[at].kind == OP_REDUCE_WAIT);
        }
    int first = 0;
    while (p->ops[first].phase < PHASE_BACKWARD)
        first++;
    const int scalars = writer_of(p, program_find(p, "ranks.scalars")), early = writer_of(p, program_find(p, "ranks.bucket.0"));
    assert_true(scalars - first <= 1);                          /* behind the product of loss and count */
    assert_true(early < p->n_ops / 2);                          /* and the first bucket does not wait for the end */
    program_free(p);
}

/* What lies before the first layer comes with the last ops of backward: gradients of layers that are worth a message do not wait for it. */
static void test_the_last_gradients_travel_alone(void **state)
{
    (void)state;
    for (double most = 1000; most < 3e5; most *= 1.7) {
        struct program *p = divided((struct ranks_settings){.ranks = 2, .shards = 2, .accumulate = 1, .bucket_bytes = most});
        const struct op *last = NULL;
        double of_layers = 0;
        bool before = false;                    /* the first layer */
        for (int i = 0; i < p->n_ops; i++)
            last = p->ops[i].kind == OP_REDUCE_WAIT ? &p->ops[i] : last;
        for (int i = 2; i < last->n_in; i++)
            if (p->values[last->in[i]].layer == NO_LAYER)
                before = true;
            else
                of_layers += (double)value_bytes(&p->values[last->in[i]]);
        assert_true(before && of_layers < most / 4);
        program_free(p);
    }
}

/* An op may make two gradients, as that of a norm does: a bucket that ends with them starts behind the sums of both, wherever it is cut. */
static void check_sums_come_first(const struct program *p)
{
    for (int i = 0; i < p->n_ops; i++)
        for (int k = 0; p->ops[i].kind == OP_REDUCE_START && k < p->ops[i].attrs.parts; k++) {
            const int writer = writer_of(p, p->ops[i].in[k]);
            assert_true(writer < i || writer == p->n_ops);          /* nobody writes whether to stop */
        }
}

static void test_buckets_start_behind_their_sums(void **state)
{
    (void)state;
    for (int form = 0; form < 2 * SMALL_MODELS; form++)
        for (double most = 200; most < 3e5; most *= 1.3) {
            struct optimizer_settings s = small_settings();
            s.ranks = (struct ranks_settings){.ranks = 2, .shards = 4, .accumulate = 1, .bucket_bytes = most, .whole_layers = form % 2};
            struct program *p = small_training(small_models[form / 2], &s);
            check_sums_come_first(p);
            program_free(p);
        }
}

/* What the rank has of the optimizer, and where weights are sent and waited for. */
static void check_slices(const struct program *p, int64_t *moments)
{
    int waits = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].slice) {
            assert_int_equal(p->values[i].slice->first % SLICE_BLOCK, 0);
            *moments += shape_count(p->values[i].shape);
        }
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if (op->kind == OP_GATHER_WAIT) {
            waits++;
            assert_int_equal(op->phase, PHASE_FORWARD);
            for (int k = 0; k < op->n_in; k++)
                for (int j = 0; j < i; j++)
                    for (int in = 0; in < p->ops[j].n_in; in++)
                        assert_true(p->ops[j].in[in] != op->in[k] || p->ops[j].kind == OP_GATHER_WAIT);
        }
        if (op->kind == OP_GATHER_START)
            assert_true(op->phase == PHASE_OPTIMIZE && op_bytes(p, op) > 0 && op_flops(p, op) == 0);
        if (op->kind == OP_REDUCE_START && op->phase == PHASE_BACKWARD)
            assert_int_equal(op->attrs.n_cuts, program_find(p, "ranks.scalars") == op->out[0] ? 0 : p->ranks + 1);
        if (op->kind == OP_ADAMW)
            assert_true(op_flops(p, op) == 8.0 * (double)shape_count(p->values[op->in[1]].shape));
    }
    assert_int_equal(count(p, OP_GATHER_START), p->n_buckets);
    assert_int_equal(waits, p->n_buckets);
}

static void test_ranks_have_slices_of_the_optimizer(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 5; ranks++) {
        int64_t moments = 0, parameters = 0, most = 0;
        for (int rank = 0; rank < ranks; rank++) {
            struct program *p = divided((struct ranks_settings){.ranks = ranks, .shards = ranks, .accumulate = 1, .bucket_bytes = 4000,
                                                                .rank = rank, .shard_optimizer = true});
            int64_t mine = 0;
            check_slices(p, &mine);
            parameters = program_parameters(p);
            moments += mine;
            most = mine > most ? mine : most;
            assert_true(p->n_buckets > 1);
            program_free(p);
        }
        assert_int_equal(moments, 2 * parameters);              /* every number has its two, on one rank */
        assert_true(most < 2 * parameters);
    }
}

static void test_too_few_blocks_are_refused(void **state)
{
    struct optimizer_settings s = small_settings();
    struct program *p = NULL;
    struct error err;
    (void)state;
    s.ranks = (struct ranks_settings){.ranks = 1024, .shards = 1024, .accumulate = 1, .bucket_bytes = 4000, .shard_optimizer = true};
    p = small_forward(small_models[SMALL_GPT], 7);
    assert_int_equal(pass_training_step(p, &s, &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "dist.shard is optimizer, and the model has "));
    assert_non_null(strstr(err.text, " blocks of 1024 parameters for 1024 ranks; leave dist.shard out"));
    program_free(p);
}

static void test_one_shard_is_no_other_program(void **state)
{
    const struct optimizer_settings s = small_settings();
    struct program *p = divided((struct ranks_settings){.ranks = 1, .shards = 1, .accumulate = 1, .bucket_bytes = 1}),
                   *q = small_training(small_models[SMALL_GPT], &s);
    (void)state;
    assert_int_equal(p->n_ops, q->n_ops);
    assert_int_equal(count(p, OP_REDUCE_START) + count(p, OP_SUM_SHARDS), 0);
    program_free(p);
    program_free(q);
}

/* ---- on a GPU ---- */

/* Ops of a layer may be done together: what sums or starts their gradients stands behind them all, buckets in their order. */
static void test_layers_stay_whole(void **state)
{
    const struct ranks_settings forms[] = {{.ranks = 2, .shards = 2, .accumulate = 1, .bucket_bytes = 4000, .whole_layers = true},
                                           {.ranks = 2, .shards = 8, .accumulate = 2, .bucket_bytes = 4000, .whole_layers = true}};
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        struct program *p = divided(forms[f]);
        int left[MOST_LAYERS] = {0}, bucket = -1;
        for (int i = 0; i < p->n_ops; i++) {
            const struct op *op = &p->ops[i];
            if (op->phase != PHASE_BACKWARD)
                continue;
            if (op->layer != NO_LAYER) {
                assert_int_equal(left[op->layer], 0);
            } else if (i > 0 && p->ops[i - 1].layer != NO_LAYER && (op->kind == OP_SUM_SHARDS || op->kind == OP_REDUCE_START)) {
                left[p->ops[i - 1].layer] = 1;
            }
            int number;
            if (op->kind == OP_REDUCE_START && sscanf(p->values[op->out[0]].name, "ranks.bucket.%d", &number) == 1)
                assert_int_equal(number, ++bucket);
        }
        assert_true(bucket > 3);
        program_free(p);
    }
}

/* Some steps of a program on random batches; its weights afterwards, to be freed. */
static float *weights_after(struct program *p, struct comm *comm)
{
    struct backend *b = new_backend(2, false);
    b->comm = comm;
    struct exec *e = new_exec(p, b);
    for (int step = 0; step < 3; step++) {
        const struct small_batch batch = random_batch(&small_models[SMALL_GPT], (uint64_t)step + 1);
        for (int i = 1; i < p->micro_batches; i++) {
            write_batch(e, &batch);
            exec_run_early(e);
        }
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
    }
    float *all = xcalloc((size_t)program_parameters(p), sizeof *all);
    int64_t at = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER) {
            exec_read(e, i, all + at);
            at += shape_count(p->values[i].shape);
        }
    exec_free(e);
    b->free(b);
    return all;
}

static void assert_same_weights(struct program *p, struct program *q, struct comm *comm)
{
    const size_t bytes = (size_t)program_parameters(p) * sizeof(float);
    float *a = weights_after(p, comm), *b = weights_after(q, comm);
    assert_memory_equal(a, b, bytes);
    free(a);
    free(b);
}

/* One rank whose gradients go through buckets all the same: they stay as they are. */
static void test_one_rank_alone(void **state)
{
    (void)state;
    for (int accumulate = 1; accumulate <= 3; accumulate += 2) {
        struct optimizer_settings s = small_settings();
        s.accumulate = accumulate;
        struct program *p = small_training(small_models[SMALL_GPT], &s);
        s.ranks = (struct ranks_settings){.ranks = 1, .shards = 1, .accumulate = accumulate, .bucket_bytes = 4000, .alone = true, .whole_layers = true};
        struct program *q = small_training(small_models[SMALL_GPT], &s);
        assert_true(count(q, OP_REDUCE_START) > 4);
        assert_int_equal(count(q, OP_REDUCE_WAIT), count(q, OP_REDUCE_START));
        for (int i = 0; i < q->n_ops; i++)
            if (q->ops[i].kind == OP_REDUCE_START)
                assert_int_equal(q->ops[i].n_in, q->ops[i].attrs.parts);           /* no weight */
        q->in_buckets = true;
        assert_same_weights(p, q, NULL);
    }
}

/* ---- who is called when ---- */

struct counting { struct comm comm; int starts, waits, bad; const float *data[64]; };

static void count_start(struct comm *c, float *data, int64_t n)
{
    struct counting *k = (struct counting *)c;
    (void)n;
    k->data[k->starts++ % 64] = data;
}

static bool count_wait(struct comm *c, const float *data)
{
    struct counting *k = (struct counting *)c;
    k->bad += k->data[k->waits++ % 64] != data;                 /* in the order in which they were started */
    return true;
}

static void test_only_the_last_micro_batch_communicates(void **state)
{
    struct counting k = {.comm = {.rank = 0, .size = 2, .start = count_start, .wait = count_wait}};
    struct program *p = divided((struct ranks_settings){.ranks = 2, .shards = 4, .accumulate = 3, .bucket_bytes = 4000});
    const int buckets = count(p, OP_REDUCE_START);
    struct backend *b = new_backend(2, false);
    (void)state;
    b->comm = &k.comm;
    assert_int_equal(p->micro_batches, 6);
    struct exec *e = new_exec(p, b);
    const struct small_batch batch = random_batch(&small_models[SMALL_GPT], 1);
    exec_measure(e, true);
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 5; i++) {
            write_batch(e, &batch);
            exec_run_early(e);
            assert_int_equal(k.starts, step * buckets);
        }
        exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
        assert_int_equal(k.starts, (step + 1) * buckets);
        assert_int_equal(k.waits, (step + 1) * buckets);
    }
    assert_int_equal(k.bad, 0);
    for (int i = 0; i < p->n_ops; i++)
        assert_int_equal(p->ops[i].profile.calls, p->ops[i].phase == PHASE_SETUP ? 0 : 2 * (int)op_runs_per_step(p, &p->ops[i]));
    exec_free(e);
    b->free(b);
}

/* What is made in its bucket has the same bits. */
static void test_gradients_are_made_in_their_bucket(void **state)
{
    const struct ranks_settings ranks = {.ranks = 2, .shards = 2, .accumulate = 1, .bucket_bytes = 4000};
    struct counting k = {.comm = {.rank = 0, .size = 2, .start = count_start, .wait = count_wait}};
    struct program *p = divided(ranks), *q = divided(ranks);
    struct memory_plan plan;
    int there = 0;
    (void)state;
    q->in_buckets = true;
    pass_memory_plan(q, &plan);
    for (int i = 0; i < q->n_ops; i++) {
        const struct op *op = &q->ops[i];
        size_t at = 0;
        for (int j = 0; j < op->attrs.parts && op->kind == OP_REDUCE_START; at += value_bytes(&q->values[op->in[j]]), j++)
            if (plan.offset[op->in[j]] == plan.offset[op->out[0]] + at) {
                assert_true(at % 64 == 0);
                there++;
            } else if (q->values[op->in[j]].kind == VALUE_GRADIENT) {
                assert_true(at % 64 != 0);                      /* memory of a value begins at such places alone */
            }
    }
    assert_true(there >= count(q, OP_REDUCE_START) - 1);        /* the first of every bucket; but counts and losses are read by others */
    memory_plan_release(&plan);
    assert_same_weights(p, q, &k.comm);
}

/* A group that fails leaves the weights as they were. */
static bool fail_wait(struct comm *c, const float *data)
{
    (void)c, (void)data;
    return false;
}

static void count_scatter(struct comm *c, float *data, const int64_t *cuts) { count_start(c, data, cuts[c->size]); }

static void count_gather(struct comm *c, const struct program *p, const struct op *op, void *const *memory)
{
    (void)c, (void)p, (void)op, (void)memory;
}

static void check_failed_sum(bool divided_optimizer)
{
    struct counting k = {.comm = {.rank = 0, .size = 2, .start = count_start, .scatter = count_scatter, .wait = fail_wait, .gather = count_gather,
                                  .gathered = fail_wait}};
    struct program *p = divided((struct ranks_settings){.ranks = 2, .shards = 2, .accumulate = 1, .bucket_bytes = 4000,
                                                        .shard_optimizer = divided_optimizer});
    struct backend *b = new_backend(1, false);
    b->comm = &k.comm;
    struct exec *e = new_exec(p, b);
    const value_id weight = program_find(p, "blocks.0.u.weight");
    void *before = read_value(e, weight);
    const struct small_batch batch = random_batch(&small_models[SMALL_GPT], 1);
    write_batch(e, &batch);
    exec_run(e, PHASE_DATA, PHASE_OPTIMIZE);
    void *after = read_value(e, weight);
    assert_memory_equal(before, after, value_bytes(&p->values[weight]));
    free(before);
    free(after);
    exec_free(e);
    b->free(b);
}

static void test_a_failed_sum_changes_nothing(void **state)
{
    (void)state;
    check_failed_sum(false);
    check_failed_sum(true);
}

/* ---- bits ---- */

#ifdef HONE_SANITIZED_THREADS
enum { STEPS = 3 };                     /* each takes thirty times as long, and races show in the first */
#else
enum { STEPS = 12 };
#endif

struct trained { const struct config *config; uint64_t bits[MOST_RANKS]; double loss[MOST_RANKS], val[MOST_RANKS]; struct error err; };

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;         /* a process sets up one run at a time */

static void train(struct dist *d, void *argument)
{
    struct trained *t = argument;
    struct config c = *t->config;
    struct trial *trial = NULL;
    struct trial_step step = {0};
    struct error err;
    bool has_data;
    c.dist.comm = dist_comm(d);
    pthread_mutex_lock(&opening);
    enum status st = trial_open(&trial, &c, NULL, NULL, &err);
    pthread_mutex_unlock(&opening);
    for (int i = 0; i < STEPS && st == OK; i++)
        st = trial_step(trial, &step, &err);
    t->loss[dist_rank(d)] = step.loss;
    if (st == OK)
        st = trial_validate(trial, NULL, &has_data, &t->val[dist_rank(d)], &err);
    t->bits[dist_rank(d)] = st == OK ? trial_fingerprint(trial) : 0;
    if (st != OK)
        t->err = err;
    trial_free(trial);
}

static struct trained train_on(int ranks, const char *sets[], int n)
{
    static const char text[] =
        "model: {arch: gpt, dim: 24, layers: 2, heads: 3, seq: 12, dropout: 0.2}\n"
        "data: {chars: 6000, workers: 1, samples: lines}\n"                    /* lines of many lengths: padding, and uneven counts */
        "train: {batch_size: 8, steps: 50, lr: 3.0e-3, warmup: 3}\n"
        "eval: {batches: 5, batch_size: 3}\n"
        "optimize: {autotune: off}\n"
        "threads: 1\n";
    struct world w = {.size = ranks, .patience_s = 60};
    struct trained t = {0};
    struct config c;
    struct error err;
    assert_ok(config_parse(&c, "ranks.yaml", text, strlen(text), sets, n, &err), err);
    t.config = &c;
    on_ranks(&w, train, &t);
    if (t.err.status != OK)
        fail_msg("%s", t.err.text);
    for (int r = 1; r < ranks; r++) {
        assert_true(t.bits[r] == t.bits[0]);
        assert_true(t.loss[r] == t.loss[0] && t.val[r] == t.val[0]);
    }
    return t;
}

/* With and without the optimizer's state divided. */
static void check_equal(const char *sets[], int n)
{
    const char *divided[16];
    const struct trained one = train_on(1, sets, n);
    assert_true(one.bits[0] != 0 && one.loss[0] < 4);
    for (int ranks = 2; ranks <= 4; ranks *= 2) {
        const struct trained several = train_on(ranks, sets, n);
        memcpy(divided, sets, (size_t)n * sizeof *sets);
        divided[n] = "dist.shard=optimizer";
        const struct trained slices = train_on(ranks, divided, n + 1);
        if (slices.bits[0] != one.bits[0] || slices.loss[0] != one.loss[0] || slices.val[0] != one.val[0])
            fail_msg("%d ranks, slices: loss %.9g and %.9g, validation %.9g and %.9g", ranks, slices.loss[0], one.loss[0], slices.val[0], one.val[0]);
        if (several.bits[0] != one.bits[0] || several.loss[0] != one.loss[0] || several.val[0] != one.val[0])
            fail_msg("%d ranks: loss %.9g and %.9g, validation %.9g and %.9g", ranks, several.loss[0], one.loss[0], several.val[0], one.val[0]);
    }
}

static void test_ranks_give_equal_bits(void **state)
{
    (void)state;
    check_equal((const char *[]){"dist.shards=4"}, 1);
    check_equal((const char *[]){"dist.shards=8", "train.accumulate=3", "dist.bucket_mb=1"}, 3);
    check_equal((const char *[]){"dist.shards=4", "optimize.passes=none", "train.accumulate=2", "threads=2"}, 4);
    check_equal((const char *[]){"dist.shards=4", "model.arch=llama", "model.heads=2"}, 3);
    check_equal((const char *[]){"dist.shards=4", "backend.kernels=reference"}, 2);
    check_equal((const char *[]){"dist.shards=4", "optimize.precision=bf16", "optimize.fused-optimizer=off"}, 3);
    check_equal((const char *[]){"dist.shards=4", "optimize.memory=1", "model.dim=48", "train.batch_size=32"}, 4);      /* with recompute */
    check_equal((const char *[]){"dist.shards=4", "model.arch=postln", "model.segments=2"}, 3);
    check_equal((const char *[]){"dist.shards=4", "model.arch=k1", "model.layers=7", "model.tree=[2, 2]", "k1.k=2"}, 5);       /* the same nodes learn */
    check_equal((const char *[]){"dist.shards=4", "model.arch=k1", "model.layers=4", "model.tree=[3]", "k1.k=1", "k1.every=3", "train.accumulate=2"}, 7);
}

/* Three ranks have no power of two among them; the sum is the same as of one batch but for rounding. */
static void test_shards_are_the_whole_batch(void **state)
{
    static const char *sets[][3] = {{"model.dropout=0", "train.batch_size=12", "dist.shards=1"},
                                    {"model.dropout=0", "train.batch_size=12", "dist.shards=4"},
                                    {"model.dropout=0", "train.batch_size=12", "dist.shards=0"}};
    (void)state;
    const struct trained one = train_on(1, sets[0], 3), parts = train_on(1, sets[1], 3), three = train_on(3, sets[2], 3);
    assert_near(parts.loss[0], one.loss[0], 1e-4 * one.loss[0], "4 shards");
    assert_near(three.loss[0], one.loss[0], 1e-4 * one.loss[0], "3 ranks");
    assert_true(three.bits[0] == three.bits[2]);
    static const char *drops[][4] = {{"train.batch_size=12", "train.accumulate=2", "dist.shards=0", "model.seq=9"},
                                     {"train.batch_size=12", "train.accumulate=2", "dist.shards=0", "optimize.passes=none"}};
    for (int k = 0; k < 2; k++) {               /* dropout counts samples, not ranks: places that are no multiples of 4 among them */
        const struct trained alone = train_on(1, drops[k], 4), two = train_on(2, drops[k], 4), several = train_on(3, drops[k], 4);
        assert_near(two.loss[0], alone.loss[0], 1e-4 * alone.loss[0], "2 ranks with dropout");
        assert_near(several.loss[0], alone.loss[0], 1e-4 * alone.loss[0], "3 ranks with dropout");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_communication_is_in_the_program), cmocka_unit_test(test_the_last_gradients_travel_alone),
        cmocka_unit_test(test_buckets_start_behind_their_sums), cmocka_unit_test(test_one_shard_is_no_other_program),
        cmocka_unit_test(test_ranks_have_slices_of_the_optimizer), cmocka_unit_test(test_too_few_blocks_are_refused),
        cmocka_unit_test(test_layers_stay_whole),
        cmocka_unit_test(test_one_rank_alone),
        cmocka_unit_test(test_only_the_last_micro_batch_communicates),
        cmocka_unit_test(test_gradients_are_made_in_their_bucket), cmocka_unit_test(test_a_failed_sum_changes_nothing),
        cmocka_unit_test(test_ranks_give_equal_bits), cmocka_unit_test(test_shards_are_the_whole_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
