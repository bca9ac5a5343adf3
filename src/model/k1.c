/* K-1: a tree of the baseline's blocks. The root reads the embeddings, a child what its parent gives; what comes out is the mean over
 * the leaves, taken parent by parent. Nodes are numbered level by level, and a node is the layer of that number. */
#include "model/model_int.h"

enum { NODES_MAX = 1024 };

/* Node after node; first_child[i] is 0 where there are none. */
struct tree {
    int n, first_child[NODES_MAX], children[NODES_MAX], parent[NODES_MAX];
};

static void grow(struct tree *t, const struct config_list *levels)
{
    int level_start = 0;
    t->n = 1;
    for (int64_t level = 0; level < levels->n; level++) {
        const int level_end = t->n;
        for (int i = level_start; i < level_end; i++) {
            t->first_child[i] = t->n;
            t->children[i] = (int)levels->at[level];
            for (int c = 0; c < t->children[i] && t->n < NODES_MAX; c++)
                t->parent[t->n++] = i;
        }
        level_start = level_end;
    }
}

/* out: per node what its leaves say. A mean is taken as soon as the last of its children is there, and so on upwards: outputs of leaves
 * need not be kept for long. */
static void join_leaves(struct builder *b, const struct tree *t, int last, value_id *out)
{
    program_scope(b->p, NO_LAYER, "tree");
    while (last > 0) {
        const int i = t->parent[last];
        char name[32];
        snprintf(name, sizeof name, "mean.%d", i);
        if (last != t->first_child[i] + t->children[i] - 1)
            return;
        const int at = program_add_op(b->p, OP_MEAN, (struct op_attrs){0}, name, t->children[i], out + t->first_child[i]);
        out[i] = at < 0 ? NO_VALUE : b->p->ops[at].out[0];
        last = i;
    }
}

static value_id body(struct builder *b, value_id x)
{
    struct tree *t = arena_alloc(&b->p->arena, sizeof *t);
    value_id *out = arena_alloc(&b->p->arena, NODES_MAX * sizeof *out);
    *t = (struct tree){0};
    grow(t, &b->m->tree);
    for (int i = 0; i < t->n; i++) {
        program_scope(b->p, i, "blocks.%d", i);
        out[i] = build_postln_block(b, i, i ? out[t->parent[i]] : x);
        if (!t->children[i])
            join_leaves(b, t, i, out);
    }
    return out[0];
}

const struct arch_info arch_k1 = {ARCH_K1, build_postln_block, body, build_layernorm, .learned_positions = true};
