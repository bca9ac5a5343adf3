/* The schema: every key of a configuration file in one table. A row's name is also its field in struct config. The switches of
 * passes stand behind optimize.passes, one for each of pass_table that has one. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "config/config_int.h"

static const struct config_choice archs[] = {{"gpt", ARCH_GPT}, {"llama", ARCH_LLAMA}, {"postln", ARCH_POSTLN},
                                              {"k1", ARCH_K1}, {"regions", ARCH_REGIONS}, {0}};
static const struct config_choice head_words[] = {{"auto", HEAD_AUTO}, {"tied", HEAD_TIED}, {"own", HEAD_OWN}, {0}};
static const struct config_choice rope_words[] = {{"none", ROPE_PLAIN}, {"linear", ROPE_LINEAR}, {"llama3", ROPE_LLAMA3}, {0}};
static const struct config_choice sources[] = {
    {"corpus", SOURCE_CORPUS}, {"text", SOURCE_TEXT}, {"bin", SOURCE_BIN}, {"regions", SOURCE_REGIONS}, {0}};
static const struct config_choice domains[] = {
    {"prose", DOMAIN_PROSE}, {"code", DOMAIN_CODE}, {"formulas", DOMAIN_FORMULAS}, {0}};
static const struct config_choice tokens[] = {{"char", TOKENS_CHAR}, {"byte", TOKENS_BYTE}, {0}};
static const struct config_choice samples[] = {{"windows", SAMPLES_WINDOWS}, {"lines", SAMPLES_LINES}, {0}};
static const struct config_choice packs[] = {{"off", PACK_OFF}, {"on", PACK_ON}, {0}};
static const struct config_choice schedules[] = {
    {"cosine", SCHEDULE_COSINE}, {"linear", SCHEDULE_LINEAR}, {"constant", SCHEDULE_CONSTANT}, {0}};
static const struct config_choice decays[] = {{"matrices", DECAY_MATRICES}, {"all", DECAY_ALL}, {0}};
static const struct config_choice on_nans[] = {{"stop", ON_NAN_STOP}, {"skip", ON_NAN_SKIP}, {0}};
static const struct config_choice scores[] = {{"l2", SCORE_L2}, {"sum", SCORE_SUM}, {0}};
static const struct config_choice selects[] = {{"norm", SELECT_NORM}, {"random", SELECT_RANDOM}, {"all", SELECT_ALL}, {0}};
static const struct config_choice switches[] = {{"auto", PASS_AUTO}, {"on", PASS_ON}, {"off", PASS_OFF}, {0}};
static const struct config_choice precisions[] = {{"f32", PRECISION_F32}, {"tf32", PRECISION_TF32}, {"bf16", PRECISION_BF16},
                                                   {"f16", PRECISION_F16}, {0}};
static const struct config_choice kernels[] = {{"tuned", KERNELS_TUNED}, {"reference", KERNELS_REFERENCE}, {0}};
static const struct config_choice shard_words[] = {{"none", SHARD_NONE}, {"optimizer", SHARD_OPTIMIZER}, {0}};
static const struct config_choice transports[] = {{"auto", TRANSPORT_AUTO}, {"none", TRANSPORT_NONE}, {"mpi", TRANSPORT_MPI},
                                                   {"nccl", TRANSPORT_NCCL}, {0}};
static const struct config_choice devices[] = {{"auto", DEVICE_AUTO}, {"cpu", DEVICE_CPU}, {"cuda", DEVICE_CUDA}, {0}};

#define ROW(field, kind, init) .name = #field, .type = kind, .offset = offsetof(struct config, field), .initial = init
#define INT(field, init, lo, hi, text)   { ROW(field, KEY_INT, init), .min = lo, .max = hi, .help = text }
#define REAL(field, init, lo, hi, text)  { ROW(field, KEY_REAL, init), .min = lo, .max = hi, .help = text }
#define BELOW(field, init, lo, hi, text) \
    { ROW(field, KEY_REAL, init), .min = lo, .max = hi, .below_max = true, .help = text }
#define EVERY(field, init, hi, text)     { ROW(field, KEY_INTERVAL, init), .min = 0, .max = hi, .help = text }
#define WORD(field, init, list, text)    { ROW(field, KEY_WORD, init), .choices = list, .help = text }
#define PATH(field, text)                { ROW(field, KEY_PATH, ""), .help = text }
#define PASSES(field, init, text)        { ROW(field, KEY_PASSES, init), .help = text }
#define INTS(field, lo, hi, text)        { ROW(field, KEY_INTS, "[]"), .min = lo, .max = hi, .help = text }
#define NAMES(field, list, text)         { ROW(field, KEY_NAMES, "[]"), .choices = list, .help = text }

/* clang-format off */
static const struct config_key rows[] = {
    /*   field                   default     range or choices        what it is */
    WORD(model.arch,             NULL,       archs,        "the architecture; postln is a post-LayerNorm gpt, k1 a tree of its blocks, regions one that reads transitions"),
    INT(model.vocab,             "0",        0, 1 << 24,   "size of the vocabulary; 0: as many as the data has"),
    INT(model.dim,               "256",      1, 1 << 16,   "width of the residual stream"),
    INT(model.layers,            "4",        1, 1024,      "number of blocks; k1: as many as tree has nodes"),
    INT(model.heads,             "8",        1, 4096,      "attention heads; must divide dim"),
    INT(model.kv_heads,          "0",        0, 4096,      "key and value heads (llama only); 0: as heads"),
    INT(model.ffn,               "0",        0, 1 << 20,   "width of the feed-forward layer; 0: 4 × dim"),
    INT(model.seq,               "128",      1, 1 << 20,   "tokens of one sample"),
    INT(model.segments,          "0",        0, 1 << 16,   "token-type embeddings; 0: none"),
    INT(model.positions,         "0",        0, 1 << 20,   "rows of the table of learned positions; 0: as seq"),
    BELOW(model.dropout,         "0",        0, 1,         "share of activations dropped while training"),
    REAL(model.rope_base,        "10000",    1, 1e12,      "base of the rotary angles (llama)"),
    WORD(model.rope_scaling,     "none",     rope_words,   "slower angles, for longer contexts than at first (llama): all of them (linear), or slow ones (llama3)"),
    REAL(model.rope_factor,      "8",        1, 1e6,       "how many times slower, with rope_scaling"),
    REAL(model.rope_low,         "1",        0, 1e6,       "llama3, above 0: low_freq_factor of Llama 3; what turns less often than this within rope_context is slowed down"),
    REAL(model.rope_high,        "4",        0, 1e6,       "llama3: high_freq_factor of Llama 3; what turns more often than this is left as it is; what lies between is slowed in part"),
    INT(model.rope_context,      "8192",     1, 1 << 24,   "llama3: tokens of the context that the model was first trained on"),
    REAL(model.norm_eps,         "0",        0, 1,         "epsilon of norms; 0: 1e-6 for llama, else 1e-5"),
    WORD(model.head,             "auto",     head_words,   "matrix of the head: the embeddings (tied), or its own; auto: tied for gpt and llama, else its own"),
    INTS(model.tree,                         2, 64,        "children of a node, level by level (k1); [3, 3] is 1 + 3 + 9 nodes"),

    WORD(data.source,            "corpus",   sources,      "the built-in corpus, a text file, token shards, or built-in walks on a grid (arch regions)"),
    PATH(data.path,                                        "text: a file, a folder or a pattern, of gzip too; bin: the shards (may hold a glob)"),
    PATH(data.val_path,                                    "validation file; empty: val_fraction of path"),
    WORD(data.domain,            "prose",    domains,      "what the built-in corpus is like"),
    NAMES(data.domains,                      domains,      "instead of domain: several, learned one after the other for train.steps each"),
    WORD(data.tokens,            "char",     tokens,       "one token per character or per byte"),
    PATH(data.tokenizer,                                   "instead of tokens: a tokenizer.json of BPE, or its folder; of shards, the one that wrote them"),
    WORD(data.samples,           "windows",  samples,      "windows of seq tokens, or lines of text, padded to seq tokens and cut behind as many"),
    INT(data.chars,              "2000000",  1, 1e10,      "length of the built-in corpus in characters"),
    INT(data.max_chars,          "0",        0, 1e15,      "characters read of a text file, or bytes where a token is a byte; 0: all"),
    REAL(data.val_fraction,      "0.1",      0, 0.9,       "share of the data kept for validation"),
    INT(data.region,             "80",       1, 1 << 16,   "transitions of a whole region (source regions); a sample has up to twice that and 3 tokens"),
    INT(data.bucket,             "0",        0, 1 << 20,   "a batch is as long as its longest sample, rounded up to a multiple of this; 0: always seq"),
    INT(data.group,              "1",        1, 1024,      "batches whose samples are sorted by length among them, so that each has samples of like length"),
    WORD(data.pack,              "off",      packs,        "on: several samples share a row of seq tokens while training, and see nothing of each other"),
    INT(data.workers,            "2",        0, 256,       "threads that prepare batches; 0: none, load inline"),
    INT(data.prefetch,           "2",        1, 1024,      "batches that each worker prepares ahead"),

    INT(train.batch_size,        "8",        1, 1 << 20,   "samples of one forward and backward pass; with several ranks, of all of them together"),
    INT(train.steps,             "2000",     1, INT32_MAX, "optimizer steps; not used when epochs is given"),
    INT(train.epochs,            "0",        0, 1e9,       "passes over the data, each rounded up to whole steps; 0: train for steps"),
    REAL(train.lr,               "3.0e-4",   0, 10,        "highest learning rate"),
    REAL(train.min_lr,           "0",        0, 10,        "learning rate at the end of the schedule"),
    WORD(train.schedule,         "cosine",   schedules,    "how the learning rate falls after the warm-up"),
    INT(train.warmup,            "100",      0, INT32_MAX, "steps in which the learning rate rises to lr; where it is left out, or --set shortens steps, no more than steps"),
    REAL(train.weight_decay,     "0.1",      0, 10,        "decoupled weight decay of AdamW"),
    BELOW(train.beta1,           "0.9",      0, 1,         "decay of AdamW's first moment"),
    BELOW(train.beta2,           "0.999",    0, 1,         "decay of AdamW's second moment"),
    REAL(train.eps,              "1.0e-8",   1e-30, 1,     "epsilon of AdamW"),
    WORD(train.decay,            "matrices", decays,       "matrices: not norms, biases and embeddings"),
    REAL(train.clip,             "1.0",      0, 1e9,       "largest global gradient norm; 0: no clipping"),
    INT(train.accumulate,        "1",        1, 1 << 20,   "batches whose gradients make one optimizer step"),
    INT(train.seed,              "42",       0, 0x1p53,    "seed of weights, data order and dropout"),
    WORD(train.on_nan,           "stop",     on_nans,      "when the loss or gradient norm is not finite: the run ends, or the step is left out; after 100 such steps in a row the run ends all the same"),
    PATH(train.init,                                       "start from these weights: a checkpoint, a safetensors file, or a model folder of others (docs/bring.md)"),

    INT(k1.k,                    "5",        1, 1024,      "nodes that are updated in a step"),
    WORD(k1.score,               "l2",       scores,       "of a node: norm of its gradient, or sum of its tensors' norms (q, k, v as one)"),
    WORD(k1.select,              "norm",     selects,      "the k highest scores, k at random, or all nodes"),
    INT(k1.every,                "1",        1, 1e6,       "steps that a selection is kept for"),

    EVERY(eval.every,            "200",      1e12,         "how often to evaluate, beside once at the end; 0: never, but at the end of each of data.domains"),
    INT(eval.batches,            "20",       1, 1e9,       "batches of one evaluation"),
    INT(eval.batch_size,         "0",        0, 1 << 20,   "samples of a batch; 0: as train.batch_size"),

    EVERY(checkpoint.every,      "500",      1e12,         "how often to save; 0: never before the end"),
    INT(checkpoint.keep,         "3",        1, 1e6,       "checkpoints kept, the newest ones"),

    INT(log.every,               "50",       1, 1e12,      "steps between two log lines"),

    PASSES(optimize.passes,      "all",                    "which of the passes below run where their own key is auto"),
    INT(optimize.memory,         "0",        0, 1e9,       "MB that a step may plan, with what kernels work in, before recompute begins; 0: what is free"),
    WORD(optimize.precision,     "f32",      precisions,   "numbers of products: bf16, f16 (with a loss scale) and tf32 are the pass mixed-precision; f16, tf32: on a GPU"),

    INT(verify.steps,            "20",       1, 1e6,       "steps of the loss curves and of the runs that must be equal"),
    REAL(verify.seconds,         "3",        0, 3600,      "seconds in which the speed of each is measured; each is opened anew 4 to 8 times. Where that does not decide: up to 4 times as long"),
    REAL(verify.gradients,       "1.0e-4",   0, 1,         "largest relative error of a first gradient"),
    REAL(verify.gradients_bf16,  "0.05",     0, 1,         "the same where optimize.precision is not f32 in one or both"),
    REAL(verify.loss,            "1.0e-3",   0, 1,         "largest relative difference of the losses at one step"),
    REAL(verify.validation,      "0.005",    0, 1,         "by how much the validation loss may be higher"),
    REAL(verify.memory,          "1",        0, 1000,      "largest memory of the second over that of the first"),
    REAL(verify.min_gain,        "0.3",      -1, 1000,     "what the second must win in speed; 0.3: 1.3 times as fast, -1: no matter how fast"),
    REAL(verify.regression,      "0.05",     0, 1000,      "by how much a report may be worse than the one before"),

    WORD(backend.kernels,        "tuned",    kernels,      "tuned kernels, or the plain ones"),

    WORD(dist.transport,         "auto",     transports,   "how ranks talk; auto: MPI where mpirun or srun has started several, and NCCL for sums where each has a GPU"),
    INT(dist.bucket_mb,          "0",        0, 1e5,       "MB of gradients that travel together; the first are 1 MB; 0: a twelfth of all, from 1 to 25"),
    WORD(dist.shard,             "none",     shard_words,  "optimizer: every rank has a part of AdamW's moments alone; the same bits"),
    INT(dist.shards,             "0",        0, 1 << 20,   "parts of a batch, a power of two: as many ranks as divide it give equal bits; 0: as many as ranks"),

    WORD(device,                 "auto",     devices,      "where to run; auto is the CPU, also where there is a GPU"),
    INT(threads,                 "0",        0, 4096,      "CPU threads; 0: all cores, or fewer where a step is too small for all: a few steps are timed, once for a machine and a program"),
};
/* clang-format on */

enum { ROWS = sizeof rows / sizeof rows[0] };
static_assert(ROWS + PASSES_MAX <= CONFIG_KEYS_MAX, "CONFIG_KEYS_MAX");

/* The pass of the n-th switch; -1: there are not so many. */
static int switched_pass(int n)
{
    for (int i = 0; pass_table[i].name; i++)
        if (!(pass_table[i].traits & PASS_IS_PRECISION) && n-- == 0)
            return i;
    return -1;
}

static int switch_count(void)
{
    int n = 0;
    while (switched_pass(n) >= 0)
        n++;
    return n;
}

static struct config_key switch_key(int pass)
{
    return (struct config_key){.name = pass_table[pass].key, .type = KEY_WORD, .initial = "auto", .choices = switches,
                               .offset = offsetof(struct config, optimize.pass) + (size_t)pass * sizeof(enum pass_switch),
                               .help = pass_table[pass].what};
}

/* Rows up to optimize.passes, the switches, the other rows. */
static int first_switch(void)
{
    int i = 0;
    while (rows[i].type != KEY_PASSES)
        i++;
    return i + 1;
}

int config_key_count(void) { return ROWS + switch_count(); }

struct config_key config_key(int i)
{
    const int first = first_switch(), n = switch_count();
    assert(i >= 0 && i < ROWS + n);
    return i < first ? rows[i] : i < first + n ? switch_key(switched_pass(i - first)) : rows[i - n];
}

const struct config_section config_sections[] = {
    {"model", "The transformer. The only section that every file must have."},
    {"data", "What it learns from."},
    {"train", "How long and how fast it learns."},
    {"k1", "Which nodes of a tree (`arch: k1`) learn in a step; what is outside of the nodes always does. A node that is not selected "
           "keeps\nevery bit of its weights, moments and count of updates."},
    {"eval", "Validation inside the training loop. `every` is a number of steps, or of epochs as in `2 epochs`."},
    {"checkpoint", "Saving. `every` is a number of steps, or of epochs as in `2 epochs`."},
    {"log", "Progress lines."},
    {"optimize", "What is done to the program before it runs. A pass that finds nothing to do changes nothing; what changed is "
                 "said when\na run starts. `passes: [fuse-qkv, fuse-loss]` runs exactly those; a pass's own key wins over "
                 "`passes`."},
    {"verify", "What `hone verify` asks for before the second config may take the place of the first, whose limits count."},
    {"backend", "Which kernels run it."},
    {"dist", "Several ranks: processes that train one model together (docs/ranks.md)."},
    {"", "These two stand outside of any section."},
};

const int config_section_count = sizeof config_sections / sizeof config_sections[0];
static_assert(sizeof config_sections / sizeof config_sections[0] <= CONFIG_SECTIONS_MAX, "CONFIG_SECTIONS_MAX");

int config_key_find(const char *name)
{
    for (int i = 0; i < config_key_count(); i++)
        if (!strcmp(config_key(i).name, name))
            return i;
    return -1;
}

int config_section_find(const char *name, size_t length)
{
    for (int i = 0; i < config_section_count; i++)
        if (strlen(config_sections[i].name) == length && !memcmp(config_sections[i].name, name, length))
            return i;
    return -1;
}

int config_key_section(int key)
{
    const char *name = config_key(key).name, *dot = strchr(name, '.');
    return config_section_find(name, dot ? (size_t)(dot - name) : 0);
}

const char *config_key_leaf(int key)
{
    const char *dot = strchr(config_key(key).name, '.');
    return dot ? dot + 1 : config_key(key).name;
}

const char *config_word(const char *key, int value)
{
    const int i = config_key_find(key);
    assert(i >= 0 && config_key(i).choices);
    for (const struct config_choice *p = config_key(i).choices; p->word; p++)
        if (p->value == value)
            return p->word;
    assert(!"a value that the schema does not have");
    return "?";
}
