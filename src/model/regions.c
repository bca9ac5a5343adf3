/* Regions: the blocks of postln over transitions. A token is a row of real numbers, or one of a few ids (start, end, a cell), which is -1
 * where there are only numbers; its type is the segment. There is no norm behind the last block. The head has two parts: the action that
 * comes next, and the type of what comes next; both have targets at the last token of a sample alone. */
#include "model/model_int.h"

/* What the loss of types weighs beside that of actions. */
static const float TYPE_WEIGHT = 0.1f;

static value_id read_transitions(struct builder *b)
{
    struct program *p = b->p;
    p->features = program_add_value(p, "features", VALUE_INPUT, F32, shape_of(3, b->o.batch, b->seq, (int64_t)REGION_FEATURES));
    if (b->o.loss)
        p->types = program_add_value(p, "types", VALUE_INPUT, I32, shape_of(2, b->o.batch, b->seq));
    const value_id x = build_linear(b, "read", p->features, b->m->dim, true);
    return build_add(b, "emb.id", x, build_embed(b, "emb", build_table(b, "emb.weight", REGION_IDS), p->tokens));
}

static void finish(struct builder *b, value_id x)
{
    struct program *p = b->p;
    p->logits = build_linear(b, "actions", x, REGION_ACTIONS, true);
    const value_id types = build_linear(b, "kinds", x, REGION_TYPES, true);
    if (!b->o.loss)
        return;
    const value_id action = build_loss(b, "action", p->logits, p->targets, &p->count);
    const value_id type = build_loss(b, "type", types, p->types, NULL);
    const value_id part = program_emit(p, OP_SCALE, (struct op_attrs){.scale = TYPE_WEIGHT}, "type.part", 1, type);
    p->loss = build_add(b, "loss", action, part);
}

const struct arch_info arch_regions = {.arch = ARCH_REGIONS, .block = build_postln_block, .read = read_transitions, .finish = finish,
                                       .learned_positions = true};
