/* The frame around the blocks: inputs, embeddings, final norm, head, loss. */
#include "model/model_int.h"

static const struct arch_info *const archs[] = {&arch_gpt, &arch_llama, &arch_postln, &arch_k1, &arch_regions};

static const struct arch_info *find_arch(enum arch arch)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (archs[i]->arch == arch)
            return archs[i];
    return NULL;
}

static void add_inputs(struct builder *b)
{
    struct program *p = b->p;
    const struct shape ids = shape_of(2, b->o.batch, b->seq);
    p->tokens = program_add_value(p, "tokens", VALUE_INPUT, I32, ids);
    if (b->o.loss)
        p->targets = program_add_value(p, "targets", VALUE_INPUT, I32, ids);
    if (b->m->segments)
        p->segments = program_add_value(p, "segments", VALUE_INPUT, I32, ids);
    if (b->o.packed)
        p->starts = program_add_value(p, "starts", VALUE_INPUT, I32, ids);
    if (b->placed)
        p->positions = program_add_value(p, "positions", VALUE_INPUT, I32, ids);
    if (b->o.dropout && b->m->dropout > 0) {
        b->tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
        program_emit(p, OP_ADVANCE, (struct op_attrs){0}, "tick", 1, b->tick);
    }
}

/* What stands at every position: all of the table, or the rows that are asked for. */
static value_id positions(struct builder *b)
{
    const value_id table = build_table(b, "pos.weight", b->m->positions ? b->m->positions : b->m->seq);
    return b->placed ? build_embed(b, "pos", table, b->p->positions) : table;
}

static value_id embeddings(struct builder *b, const struct arch_info *arch, value_id *words)
{
    struct program *p = b->p;
    value_id x;
    if (arch->read)
        x = arch->read(b);
    else {
        *words = build_table(b, "emb.weight", b->m->vocab);
        x = build_embed(b, "emb", *words, p->tokens);
    }
    if (arch->learned_positions)
        x = build_add(b, "emb.pos", x, positions(b));
    if (b->m->segments) {
        const value_id s = build_embed(b, "seg", build_table(b, "seg.weight", b->m->segments), p->segments);
        x = build_add(b, "emb.seg", x, s);
    }
    return build_dropout(b, x);
}

/* The words of the config as numbers: linear slows every pair down, llama3 the slow ones. */
static struct rope_stretch stretch_of(const struct config_model *m)
{
    const bool by_speed = m->rope_scaling == ROPE_LLAMA3;
    if (m->rope_scaling == ROPE_PLAIN)
        return (struct rope_stretch){0};
    return (struct rope_stretch){.factor = (float)m->rope_factor, .low = by_speed ? (float)m->rope_low : 0, .high = by_speed ? (float)m->rope_high : 0,
                                 .context = by_speed ? (float)m->rope_context : 0};
}

static void rope_tables(struct builder *b)
{
    const struct op_attrs attrs = {.rows = b->o.samples ? b->m->seq : b->seq, .cols = b->m->dim / b->m->heads / 2, .base = (float)b->m->rope_base,
                                   .stretch = stretch_of(b->m)};
    const int at = program_add_op(b->p, OP_ROPE_TABLE, attrs, "rope", 0, NULL);
    if (at >= 0) {
        b->cosine = b->p->ops[at].out[0];
        b->sine = b->p->ops[at].out[1];
    }
}

/* A word of the vocabulary behind every token. */
static void words_head(struct builder *b, value_id x, value_id words)
{
    struct program *p = b->p;
    p->logits = config_head_is_tied(b->m) ? program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "logits", 2, x, words)
                                          : build_linear(b, "head", x, b->m->vocab, false);
    if (b->o.loss)
        p->loss = build_loss(b, "", p->logits, p->targets, &p->count);
}

static void finish(struct builder *b, const struct arch_info *arch, value_id x, value_id words)
{
    if (arch->norm)
        x = arch->norm(b, "norm", x);
    if (arch->finish)
        arch->finish(b, x);
    else
        words_head(b, x, words);
}

static value_id chain(struct builder *b, const struct arch_info *arch, value_id x)
{
    for (int i = 0; i < b->m->layers; i++) {
        program_scope(b->p, i, "blocks.%d", i);
        x = arch->block(b, i, x);
    }
    return x;
}

enum status model_build(struct program **out, const struct config_model *m, struct model_options options,
                        struct error *err)
{
    const struct arch_info *arch = find_arch(m->arch);
    struct builder b = {.p = program_new(config_word("model.arch", (int)m->arch)), .m = m, .o = options, .seq = m->length ? m->length : m->seq,
                        .placed = m->given_positions || options.samples, .tick = NO_VALUE, .cosine = NO_VALUE, .sine = NO_VALUE};
    struct program *p = b.p;
    value_id words = NO_VALUE;
    add_inputs(&b);
    value_id x = embeddings(&b, arch, &words);
    if (m->arch == ARCH_LLAMA)
        rope_tables(&b);
    x = arch->body ? arch->body(&b, x) : chain(&b, arch, x);
    program_scope(p, NO_LAYER, "%s", "");
    if (!options.begins)
        finish(&b, arch, x, words);
    const enum status st = program_validate(p, err);
    if (st == OK)
        *out = p;
    else
        program_free(p);
    return st;
}

double model_step_flops(const struct program *p, const struct config_model *m, int64_t batch)
{
    int64_t weights = config_head_is_tied(m) ? m->vocab * m->dim : 0;  /* the tied table is also a matrix of the head */
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && p->values[i].role != ROLE_EMBEDDING)
            weights += shape_count(p->values[i].shape);
    double seq = (double)(m->length ? m->length : m->seq), tokens = (double)batch * seq;
    if (m->rows) {                      /* samples share rows: a token sees what is in its own */
        tokens = (double)(shape_count(p->values[p->tokens].shape) * p->micro_batches);
        seq = tokens / (double)batch;
    }
    return tokens * (6.0 * (double)weights + 6.0 * (double)(m->layers * m->dim) * seq);
}
