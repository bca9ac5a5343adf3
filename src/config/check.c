/* What keys mean together: derived defaults, contradictions, sizes that no machine has. Each check is one function; its
 * message stands at the place of the key to blame, with what would be right. */
#include <assert.h>
#include <string.h>

#include "config/config_int.h"

/* The most numbers that the parameters or a single tensor may hold: 4 TiB of f32. */
#define NUMBERS_MAX 0x1p40

static int index_of(const char *name)
{
    const int key = config_key_find(name);
    assert(key >= 0);
    return key;
}

struct config_place config_blame(const struct config_reader *r, const char *const *names, int n)
{
    struct config_place worst = {0};
    for (int i = 0; i < n; i++) {
        const struct config_place at = r->places[index_of(names[i])];
        if (at.rank > worst.rank || (!worst.rank && !worst.line))
            worst = at;
    }
    return worst;
}

/* The default that stands for 0 in the file. */
static void derive(struct config *c)
{
    if (!c->model.kv_heads)
        c->model.kv_heads = c->model.heads;
    if (!c->model.ffn)
        c->model.ffn = 4 * c->model.dim;
    if (c->model.norm_eps == 0)
        c->model.norm_eps = c->model.arch == ARCH_LLAMA ? 1e-6 : 1e-5;
    config_give_positions(c);
    if (!c->eval.batch_size)
        c->eval.batch_size = c->train.batch_size;
}

static bool is_given(const struct config_reader *r, const char *name)
{
    const struct config_place at = r->places[index_of(name)];
    return at.line || at.set;
}

/* 1 + 3 + 9 for [3, 3]; no more than a bit above `most`, which is enough to refuse it. */
static int64_t count_nodes(const struct config_list *tree, int64_t most)
{
    int64_t nodes = 1, level = 1;
    for (int64_t i = 0; i < tree->n && nodes <= most; i++) {
        level *= tree->at[i];
        nodes += level;
    }
    return nodes;
}

static void show_tree(const struct config *c, char out[128])
{
    FILE *to = fmemopen(out, 128, "w");
    *out = '\0';
    if (!to)
        return;
    config_value_print(c, index_of("model.tree"), to);
    fclose(to);
    out[127] = '\0';
}

static enum status check_k(struct config_reader *r, const char *tree)
{
    const struct config *c = r->c;
    if (c->k1.select == SELECT_ALL || c->k1.k <= c->model.layers)
        return OK;
    return config_refuse(r, BLAME(r, "k1.k", "model.tree"), "k1.k is %lld, and model.tree %s has %lld nodes; it must be at most that",
                         (long long)c->k1.k, tree, (long long)c->model.layers);
}

/* The tree says how many blocks there are; a number that is written beside it must be the same. */
static enum status check_tree(struct config_reader *r)
{
    struct config_model *m = &r->c->model;
    const int64_t most = (int64_t)config_key(index_of("model.layers")).max, nodes = count_nodes(&m->tree, most);
    char tree[128];
    show_tree(r->c, tree);
    if (m->arch != ARCH_K1)
        return !m->tree.n ? OK : config_refuse(r, BLAME(r, "model.tree", "model.arch"),
                                               "model.tree is %s, and only arch k1 is a tree; remove it, or choose arch: k1", tree);
    if (!m->tree.n)
        return config_refuse(r, BLAME(r, "model.tree", "model.arch"), "model.tree is empty, and arch k1 is a tree; try [3, 3]");
    if (nodes > most)
        return config_refuse(r, BLAME(r, "model.tree"), "model.tree %s has more than %lld nodes; make it smaller", tree, (long long)most);
    if (is_given(r, "model.layers") && m->layers != nodes)
        return config_refuse(r, BLAME(r, "model.layers", "model.tree"),
                             "model.layers is %lld, and model.tree %s has %lld nodes; remove layers or make it %lld", (long long)m->layers,
                             tree, (long long)nodes, (long long)nodes);
    m->layers = nodes;
    return check_k(r, tree);
}

static void shorten_warmup(struct config *c)
{
    const int64_t steps = c->train.steps * config_stages(c);
    if (!c->train.epochs && c->train.warmup > steps)
        c->train.warmup = steps;
}

static enum status check_required(struct config_reader *r)
{
    char wanted[256];
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_place at = r->places[i], section = {.line = r->section_lines[config_key_section(i)]};
        if (config_key(i).initial || at.line || at.set)
            continue;
        config_value_wanted(i, wanted, sizeof wanted);
        return config_refuse(r, section, "%s is missing; choose %s", config_key(i).name, wanted);
    }
    return OK;
}

/* "4 or 8": the nearest divisors of `whole` on both sides of `n` whose quotient is a multiple of `quotient_of`. */
static void nearest_divisors(char *out, size_t size, int64_t whole, int64_t n, int64_t quotient_of)
{
    const int64_t start = n > whole ? whole + 1 : n;
    int64_t below = start - 1, above = n + 1;
    while (below > 0 && whole % (below * quotient_of))
        below--;
    while (above <= whole && whole % (above * quotient_of))
        above++;
    if (below > 0 && above <= whole)
        snprintf(out, size, "try %lld or %lld", (long long)below, (long long)above);
    else
        snprintf(out, size, "try %lld", (long long)(below > 0 ? below : above));
}

static enum status check_heads(struct config_reader *r)
{
    const struct config_model *m = &r->c->model;
    const long long heads = m->heads, dim = m->dim;
    const int64_t quotient_of = m->arch == ARCH_LLAMA && dim % 2 == 0 ? 2 : 1;
    char advice[64];
    nearest_divisors(advice, sizeof advice, dim, heads, quotient_of);
    if (dim % heads)
        return config_refuse(r, BLAME(r, "model.heads", "model.dim"),
                             "model.heads is %lld, and %lld does not divide model.dim %lld; %s", heads, heads, dim,
                             advice);
    if (m->arch != ARCH_LLAMA || dim / heads % 2 == 0)
        return OK;
    if (dim % 2)
        return config_refuse(r, BLAME(r, "model.dim", "model.heads", "model.arch"),
                             "model.dim is %lld, and arch llama needs an even number; try %lld", dim, dim + 1);
    return config_refuse(r, BLAME(r, "model.heads", "model.dim", "model.arch"),
                         "model.heads is %lld, so a head has %lld of the %lld numbers of model.dim, and arch llama "
                         "needs an even number; %s",
                         heads, dim / heads, dim, advice);
}

static enum status check_kv_heads(struct config_reader *r)
{
    const struct config_model *m = &r->c->model;
    const long long kv = m->kv_heads, heads = m->heads;
    const struct config_place at = BLAME(r, "model.kv_heads", "model.heads", "model.arch");
    char advice[64];
    if (kv != heads && m->arch != ARCH_LLAMA)
        return config_refuse(r, at,
                             "model.kv_heads is %lld and model.heads is %lld, and only arch llama shares keys and "
                             "values between heads; remove kv_heads or make it %lld",
                             kv, heads, heads);
    nearest_divisors(advice, sizeof advice, heads, kv, 1);
    if (heads % kv)
        return config_refuse(r, at, "model.kv_heads is %lld, and %lld does not divide model.heads %lld; %s", kv, kv,
                             heads, advice);
    return OK;
}

static enum status check_rope(struct config_reader *r)
{
    const struct config_model *m = &r->c->model;
    char low[40], high[40];
    if (m->rope_scaling == ROPE_PLAIN)
        return OK;
    if (m->arch != ARCH_LLAMA)
        return config_refuse(r, BLAME(r, "model.rope_scaling", "model.arch"), "model.rope_scaling is %s, and only arch llama has rotary angles; remove it, "
                             "or choose arch: llama", config_word("model.rope_scaling", (int)m->rope_scaling));
    if (m->rope_scaling == ROPE_LINEAR || (m->rope_low > 0 && m->rope_low < m->rope_high))
        return OK;
    if (m->rope_low <= 0)
        return config_refuse(r, BLAME(r, "model.rope_low", "model.rope_scaling"), "model.rope_low is 0, and model.rope_scaling is llama3, which divides by it; "
                             "it must be above 0");
    config_real_format(m->rope_low, low);
    config_real_format(m->rope_high, high);
    return config_refuse(r, BLAME(r, "model.rope_low", "model.rope_high"), "model.rope_low is %s, and model.rope_high is %s; it must be less than that", low, high);
}

static enum status refuse_file(struct config_reader *r, const char *name, const char *path)
{
    char shown[CONFIG_SHOWN_MAX];
    return config_refuse(r, BLAME(r, name, "data.source"),
                         "%s is '%s', and data.source is %s, which reads no file; set data.source to text or bin, "
                         "or remove %s",
                         name, config_shown(shown, path), config_word("data.source", (int)r->c->data.source), name);
}

static enum status check_data(struct config_reader *r)
{
    const struct config_data *d = &r->c->data;
    const char *source = config_word("data.source", d->source);
    const bool built_in = d->source == SOURCE_CORPUS || d->source == SOURCE_REGIONS;
    if (!built_in && !d->path[0])
        return config_refuse(r, BLAME(r, "data.source", "data.path"),
                             "data.source is %s, and data.path is empty; set data.path to the file to read", source);
    if (built_in && d->path[0])
        return refuse_file(r, "data.path", d->path);
    if (built_in && d->val_path[0])
        return refuse_file(r, "data.val_path", d->val_path);
    if (d->source == SOURCE_BIN && d->samples == SAMPLES_LINES)
        return config_refuse(r, BLAME(r, "data.samples", "data.source"),
                             "data.samples is lines, and data.source bin has no lines; set data.samples to windows");
    return OK;
}

/* A warm-up longer than the run is a contradiction where the steps were there when it was written; a run that is cut short by --set or
 * that leaves the warm-up to its default just has a shorter one. What a run kept names both, whoever wrote them, and has been trained. */
static bool warmup_is_meant(const struct config_reader *r)
{
    if (r->saved)
        return false;
    const struct config_place warmup = r->places[index_of("train.warmup")], steps = r->places[index_of("train.steps")];
    return warmup.set || (warmup.line && !steps.set);
}

static enum status check_train(struct config_reader *r)
{
    const struct config_train *t = &r->c->train;
    char lr[40], min_lr[40];
    config_real_format(t->lr, lr);
    config_real_format(t->min_lr, min_lr);
    if (t->min_lr > t->lr)
        return config_refuse(r, BLAME(r, "train.min_lr", "train.lr"),
                             "train.min_lr is %s, and the schedule falls from train.lr %s; it must be at most that",
                             min_lr, lr);
    const int stages = config_stages(r->c);
    if (!t->epochs && t->warmup > t->steps * stages && warmup_is_meant(r))
        return config_refuse(r, BLAME(r, "train.warmup", "train.steps"),
                             "train.warmup is %lld, and training ends after %strain.steps %lld; it must be at most that",
                             (long long)t->warmup, stages > 1 ? "a stage for each of data.domains with " : "", (long long)t->steps);
    return OK;
}

/* A CPU multiplies f32 and, at best, bf16. The reference runs whatever a program holds, and rounds nothing else. */
static enum status check_precision(struct config_reader *r)
{
    const struct config *c = r->c;
    const bool reference = c->backend.kernels == KERNELS_REFERENCE;
    if (c->device == DEVICE_CUDA || c->optimize.precision == PRECISION_F32 || c->optimize.precision == PRECISION_BF16 ||
        (reference && c->optimize.precision == PRECISION_F16))
        return OK;
    return config_refuse(r, BLAME(r, "optimize.precision", "device"),
                         "optimize.precision is %s, and device is %s: no CPU multiplies these numbers; choose f32 or bf16, or device: cuda",
                         config_word("optimize.precision", (int)c->optimize.precision), config_word("device", (int)c->device));
}

/* Parts of a batch are alike, and pairs of them are added up, then pairs of pairs. */
static enum status check_shards(struct config_reader *r)
{
    const long long shards = r->c->dist.shards, batch = r->c->train.batch_size;
    const struct config_place at = BLAME(r, "dist.shards", "train.batch_size");
    if (shards & (shards - 1))
        return config_refuse(r, at, "dist.shards is %lld, and a batch is divided into a power of two; try 1, 2, 4, 8...", shards);
    if (shards && batch % shards)
        return config_refuse(r, at, "dist.shards is %lld, and %lld does not divide train.batch_size %lld; make that %lld or %lld", shards, shards,
                             batch, batch < shards ? shards : batch / shards * shards, (batch < shards ? 2 : batch / shards + 1) * shards);
    return OK;
}

static enum status check_transport(struct config_reader *r)
{
    if (r->c->dist.transport != TRANSPORT_NCCL || r->c->device == DEVICE_CUDA)
        return OK;
    return config_refuse(r, BLAME(r, "dist.transport", "device"), "dist.transport is nccl, and device is %s: NCCL sums from GPU to GPU; choose mpi, or device: cuda",
                         config_word("device", (int)r->c->device));
}

/* Weights of the projections, the feed-forward layer and the embeddings; norms and biases are small beside them. */
static double count_parameters(const struct config_model *m)
{
    const double dim = (double)m->dim, kv = dim / (double)m->heads * (double)m->kv_heads;
    const double attention = 2 * dim * dim + 2 * dim * kv;
    const double ffn = (m->arch == ARCH_LLAMA ? 3 : 2) * dim * (double)m->ffn;
    const double tables = config_head_is_tied(m) || m->arch == ARCH_REGIONS ? 1 : 2;
    const double positions = m->arch == ARCH_LLAMA ? 0 : (double)(m->positions ? m->positions : m->seq);
    return (double)m->layers * (attention + ffn) + dim * (tables * (double)m->vocab + positions + (double)m->segments);
}

static enum status check_parameters(struct config_reader *r)
{
    const struct config_model *m = &r->c->model;
    const double n = count_parameters(m);
    if (n < NUMBERS_MAX)
        return OK;
    return config_refuse(r, BLAME(r, "model.dim", "model.layers", "model.ffn", "model.vocab"),
                         "the model has %.2g parameters, and the most is %.2g; make model.dim %lld, model.layers %lld, "
                         "model.ffn %lld or model.vocab %lld smaller",
                         n, NUMBERS_MAX, (long long)m->dim, (long long)m->layers, (long long)m->ffn,
                         (long long)m->vocab);
}

/* A tensor of the step, as the product of up to four keys. */
struct tensor_size {
    const char *what;
    const char *keys[4];
    const char *unless;         /* a pass that never has it whole in memory; NULL: there is none */
};

static int64_t int_at(const struct config *c, const char *name)
{
    const int key = index_of(name);
    assert(config_key(key).type == KEY_INT);
    return *(const int64_t *)((const char *)c + config_key(key).offset);
}

static enum status check_tensor(struct config_reader *r, const struct tensor_size *t)
{
    char list[256], remedy[64] = "";
    size_t used = 0;
    double numbers = 1;
    int n = 0;
    for (; n < 4 && t->keys[n]; n++) {
        const int64_t value = int_at(r->c, t->keys[n]);
        numbers *= (double)value;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %lld", n ? " x " : "", t->keys[n],
                                 (long long)value);
        assert(used < sizeof list);
    }
    if (numbers < NUMBERS_MAX || (t->unless && config_pass_is_on(r->c, config_pass_find(t->unless))))
        return OK;
    if (t->unless)
        snprintf(remedy, sizeof remedy, ", or set optimize.%s to on", t->unless);
    return config_refuse(r, config_blame(r, t->keys, n),
                         "%s would hold %s = %.2g numbers, and the most is %.2g; make one of them smaller%s", t->what,
                         list, numbers, NUMBERS_MAX, remedy);
}

static enum status check_tensors(struct config_reader *r)
{
    static const struct tensor_size table[] = {
        {"the attention scores", {"train.batch_size", "model.heads", "model.seq", "model.seq"}, "flash-attention"},
        {"the attention scores", {"eval.batch_size", "model.heads", "model.seq", "model.seq"}, "flash-attention"},
        {"the logits", {"train.batch_size", "model.seq", "model.vocab"}, "fuse-loss"},
        {"the logits", {"eval.batch_size", "model.seq", "model.vocab"}, "fuse-loss"},
        {"the feed-forward layer", {"train.batch_size", "model.seq", "model.ffn"}, NULL},
        {"the feed-forward layer", {"eval.batch_size", "model.seq", "model.ffn"}, NULL},
        {"the residual stream", {"train.batch_size", "model.seq", "model.dim"}, NULL},
        {"the residual stream", {"eval.batch_size", "model.seq", "model.dim"}, NULL},
    };
    enum status st = OK;
    for (size_t i = 0; st == OK && i < sizeof table / sizeof table[0]; i++)
        st = check_tensor(r, &table[i]);
    return st;
}

enum status config_check(struct config_reader *r)
{
    static enum status (*const checks[])(struct config_reader *) = {
        check_tree, check_heads, check_kv_heads, check_rope, config_check_domains, check_data, config_check_regions, check_train, check_precision, check_shards,
        check_transport, check_parameters, check_tensors,
    };
    enum status st = check_required(r);
    derive(r->c);
    config_settle_domains(r);
    for (size_t i = 0; st == OK && i < sizeof checks / sizeof checks[0]; i++)
        st = checks[i](r);
    shorten_warmup(r->c);
    return st;
}
