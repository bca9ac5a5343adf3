/* The frame around the blocks: inputs, embeddings, final norm, head, loss. */
#include "model/model_int.h"

static const struct arch_info *const archs[] = {&arch_gpt, &arch_llama, &arch_postln, &arch_k1};

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
    const struct shape ids = shape_of(2, b->o.batch, b->m->seq);
    p->tokens = program_add_value(p, "tokens", VALUE_INPUT, I32, ids);
    if (b->o.loss)
        p->targets = program_add_value(p, "targets", VALUE_INPUT, I32, ids);
    if (b->m->segments)
        p->segments = program_add_value(p, "segments", VALUE_INPUT, I32, ids);
    if (b->o.dropout && b->m->dropout > 0) {
        b->tick = program_add_value(p, "tick", VALUE_STATE, I32, shape_of(0));
        program_emit(p, OP_ADVANCE, (struct op_attrs){0}, "tick", 1, b->tick);
    }
}

static value_id table(struct builder *b, const char *name, int64_t rows)
{
    return program_add_parameter(b->p, name, shape_of(2, rows, b->m->dim), ROLE_EMBEDDING, INIT_NORMAL, 0.02f);
}

static value_id embeddings(struct builder *b, const struct arch_info *arch, value_id *words)
{
    struct program *p = b->p;
    *words = table(b, "emb.weight", b->m->vocab);
    value_id x = program_emit(p, OP_EMBED, (struct op_attrs){0}, "emb", 2, *words, p->tokens);
    if (arch->learned_positions)
        x = build_add(b, "emb.pos", x, table(b, "pos.weight", b->m->seq));
    if (b->m->segments) {
        const value_id s = program_emit(p, OP_EMBED, (struct op_attrs){0}, "seg", 2,
                                        table(b, "seg.weight", b->m->segments), p->segments);
        x = build_add(b, "emb.seg", x, s);
    }
    return build_dropout(b, x);
}

static void rope_tables(struct builder *b)
{
    const struct op_attrs attrs = {.rows = b->m->seq, .cols = b->m->dim / b->m->heads / 2, .base = (float)b->m->rope_base};
    const int at = program_add_op(b->p, OP_ROPE_TABLE, attrs, "rope", 0, NULL);
    if (at >= 0) {
        b->cosine = b->p->ops[at].out[0];
        b->sine = b->p->ops[at].out[1];
    }
}

static void add_loss(struct builder *b)
{
    struct program *p = b->p;
    const value_id logp = program_emit(p, OP_LOG_SOFTMAX, (struct op_attrs){0}, "logp", 1, p->logits);
    const value_id in[] = {logp, p->targets};
    const int at = program_add_op(p, OP_NLL, (struct op_attrs){0}, "loss", 2, in);
    if (at >= 0) {
        p->loss = p->ops[at].out[0];
        p->count = p->ops[at].out[1];
    }
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
    struct builder b = {.p = program_new(config_word("model.arch", (int)m->arch)), .m = m, .o = options,
                        .tick = NO_VALUE, .cosine = NO_VALUE, .sine = NO_VALUE};
    struct program *p = b.p;
    value_id words;
    add_inputs(&b);
    value_id x = embeddings(&b, arch, &words);
    if (m->arch == ARCH_LLAMA)
        rope_tables(&b);
    x = arch->body ? arch->body(&b, x) : chain(&b, arch, x);
    program_scope(p, NO_LAYER, "%s", "");
    x = arch->norm(&b, "norm", x);
    p->logits = arch->tied_head ? program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, "logits", 2, x, words)
                                : build_linear(&b, "head", x, m->vocab, false);
    if (options.loss)
        add_loss(&b);
    const enum status st = program_validate(p, err);
    if (st == OK)
        *out = p;
    else
        program_free(p);
    return st;
}

double model_step_flops(const struct program *p, const struct config_model *m, int64_t batch)
{
    const struct arch_info *arch = find_arch(m->arch);
    int64_t weights = arch->tied_head ? m->vocab * m->dim : 0;  /* the tied table is also a matrix of the head */
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i].kind == VALUE_PARAMETER && p->values[i].role != ROLE_EMBEDDING)
            weights += shape_count(p->values[i].shape);
    const double tokens = (double)(batch * m->seq);
    return tokens * (6.0 * (double)weights + 6.0 * (double)(m->layers * m->dim * m->seq));
}
