/* What the architectures share: the builder's state and the parts they are made of. */
#ifndef HONE_MODEL_MODEL_INT_H
#define HONE_MODEL_MODEL_INT_H

#include "model/model.h"

struct builder {
    struct program *p;
    const struct config_model *m;
    struct model_options o;
    int64_t seq;                /* tokens of a row: m->seq, or m->length where that is given */
    bool placed;                /* positions are an input */
    value_id tick;              /* counter that makes every forward's dropout differ; NO_VALUE without dropout */
    value_id cosine, sine;      /* RoPE tables; NO_VALUE without */
    int dropouts;               /* so far: each has a random stream of its own */
};

/* One file per architecture: a block, how blocks follow each other, and whether positions are learned. */
struct arch_info {
    enum arch arch;
    value_id (*block)(struct builder *b, int layer, value_id x);
    value_id (*body)(struct builder *b, value_id x);    /* all blocks; NULL: one after the other */
    value_id (*norm)(struct builder *b, const char *name, value_id x);     /* behind the last block; NULL: none */
    value_id (*read)(struct builder *b);                /* what tokens are made of; NULL: a table of words */
    void (*finish)(struct builder *b, value_id x);      /* head and loss; NULL: words */
    bool learned_positions;
};

extern const struct arch_info arch_gpt, arch_llama, arch_postln, arch_k1, arch_regions;

value_id build_layernorm(struct builder *b, const char *name, value_id x);
value_id build_rmsnorm(struct builder *b, const char *name, value_id x);
/* x (.., in) -> (.., out) by a new matrix name.weight (out, in), with name.bias if asked for. */
value_id build_linear(struct builder *b, const char *name, value_id x, int64_t out, bool bias);
value_id build_dropout(struct builder *b, value_id x);
/* Causal self-attention with separate Q, K, V, a mask, stored scores and softmax; rotary: on queries and keys. */
value_id build_attention(struct builder *b, int layer, value_id x, bool bias, bool rotary);
value_id build_mlp_gelu(struct builder *b, value_id x);
value_id build_mlp_swiglu(struct builder *b, value_id x);
/* A block with LayerNorm after each residual. */
value_id build_postln_block(struct builder *b, int layer, value_id x);
/* A table of `rows` vectors, learned. */
value_id build_table(struct builder *b, const char *name, int64_t rows);
value_id build_embed(struct builder *b, const char *name, value_id table, value_id ids);
/* Mean of -log softmax(logits) at the targets that are not padding; *count (may be NULL) gets how many those are. */
value_id build_loss(struct builder *b, const char *name, value_id logits, value_id targets, value_id *count);
value_id build_add(struct builder *b, const char *name, value_id x, value_id y);

#endif
