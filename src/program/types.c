/* Which types the values of an op may have. A 16-bit float is called narrow; which one, bf16 or f16, is the same in a whole program.
 *
 * One letter per input and output, in their order; the last one stands for all that follow:
 *   f  f32, always: statistics, sums, losses, moments, what is trained
 *   i  i32
 *   n  f32 or narrow, all values with this letter of an op alike
 *   s  a result that products may read: as n, or narrow where those are f32
 *   o  operands of a product: f32 or narrow, all of an op alike. Casts make them narrow where they are not. Where the product rounds its
 *      operands to bf16, each of them is f32 or bf16
 *   a  f32 or narrow, whatever the others are
 *   x  any type
 *   h  narrow: copies of parameters that the optimizer writes
 * In front of a letter, * means attrs.parts times and + attrs.copies times. */
#include "program/program.h"

struct op_types { const char *in, *out; };

static const struct op_types op_types[OP_KINDS] = {
    [OP_EMBED] = {"fi", "a"},
    [OP_EMBED_GRAD] = {"fia", "f"},
    [OP_MATMUL] = {"oof", "a"},
    [OP_SUM_LEADING] = {"aa", "f"},
    [OP_ADD] = {"na", "n"},
    [OP_MUL] = {"n", "n"},
    [OP_GELU] = {"n", "n"},
    [OP_GELU_GRAD] = {"n", "n"},
    [OP_SILU] = {"n", "n"},
    [OP_SILU_GRAD] = {"n", "n"},
    [OP_LAYERNORM] = {"nff", "sff"},
    [OP_LAYERNORM_GRAD] = {"nnfffn", "nff"},
    [OP_RMSNORM] = {"nf", "sf"},
    [OP_RMSNORM_GRAD] = {"nnffn", "nf"},
    [OP_ROPE_TABLE] = {"f", "f"},
    [OP_ROPE] = {"nffi", "s"},
    [OP_CAUSAL_MASK] = {"f", "f"},
    [OP_ATTN_SCORES] = {"o", "f"},
    [OP_ATTN_MIX] = {"o", "a"},
    [OP_ATTN_MIX_T] = {"o", "a"},
    [OP_SOFTMAX] = {"f", "f"},
    [OP_SOFTMAX_GRAD] = {"f", "f"},
    [OP_LOG_SOFTMAX] = {"a", "f"},
    [OP_LOG_SOFTMAX_GRAD] = {"f", "a"},
    [OP_DROPOUT] = {"ni", "n"},
    [OP_NLL] = {"fi", "f"},
    [OP_NLL_GRAD] = {"fif", "f"},
    [OP_FILL] = {"a", "f"},
    [OP_ADVANCE] = {"i", "i"},
    [OP_LR] = {"i", "f"},
    [OP_ACCUMULATE] = {"fffi", "f"},
    [OP_DIVIDE] = {"f", "f"},
    [OP_ZERO] = {"x", "x"},
    [OP_SUM_SQUARES] = {"f", "f"},
    [OP_CLIP] = {"f", "f"},
    [OP_ADAMW] = {"fff+hffiffi", "fff+h"},
    [OP_HOST_READ] = {"f", "f"},
    [OP_PROJECT] = {"o*o*f", "n"},
    [OP_PROJECT_GRAD] = {"o", "a"},
    [OP_SWIGLU] = {"n", "s"},
    [OP_SWIGLU_GRAD] = {"n", "s"},
    [OP_ATTENTION] = {"nnni", "nff"},
    [OP_ATTENTION_GRAD] = {"nnnnnffi", "n"},
    [OP_ADD_LAYERNORM] = {"nnff", "snff"},
    [OP_ADD_RMSNORM] = {"nnf", "snf"},
    [OP_LINEAR_GELU] = {"oof", "sn"},
    [OP_LINEAR_LOSS] = {"ooif", "ffaf"},
    [OP_ADAMW_ALL] = {"*f*f*f+h*ffiffi", "*f*f*f+h"},
    [OP_KEEP] = {"fif", "f"},
    [OP_CAST] = {"a", "a"},
    [OP_RESCALE] = {"fif", "fi"},
    [OP_MEAN] = {"n", "n"},
    [OP_SCALE] = {"n", "n"},
    [OP_HELD] = {"i", "f"},
    [OP_GROUP_SCORES] = {"f", "f"},
    [OP_TOP_K] = {"iiif", "iif"},
    [OP_SUM_SHARDS] = {"*fif", "*f"},
    [OP_REDUCE_START] = {"f", "f"},
    [OP_REDUCE_WAIT] = {"f", "f"},
    [OP_SQUARE_BLOCKS] = {"f", "f"},
    [OP_SUM_BLOCKS] = {"f", "f"},
    [OP_GATHER_START] = {"f", "f"},
    [OP_GATHER_WAIT] = {"*f+h", "*f+h"},
    [OP_STORE_KV] = {"nnnni", "n"},
    [OP_ATTEND_KV] = {"nnni", "n"},
};

static int repeats(const struct op_attrs *a, char mark) { return mark == '*' ? a->parts : mark == '+' ? a->copies : 1; }

static char letter(const char *letters, const struct op_attrs *a, int i)
{
    char last = *letters;
    for (const char *at = letters; *at; at++) {
        const int n = repeats(a, *at);
        at += *at == '*' || *at == '+';
        last = *at;
        if (i < n)
            break;
        i -= n;
    }
    return last;
}

enum op_type op_in_type(const struct op *op, int i) { return (enum op_type)letter(op_types[op->kind].in, &op->attrs, i); }
enum op_type op_out_type(const struct op *op, int i) { return (enum op_type)letter(op_types[op->kind].out, &op->attrs, i); }

/* The type of the first input with this letter; F32 where none has it. */
static enum dtype common_type(const struct program *p, const struct op *op, enum op_type type)
{
    for (int i = 0; i < op->n_in; i++)
        if (op_in_type(op, i) == type)
            return p->values[op->in[i]].dtype;
    return F32;
}

enum dtype op_result_type(const struct program *p, const struct op *op, int i)
{
    const enum op_type type = op_out_type(op, i);
    if (op->kind == OP_CAST)
        return op->attrs.to;
    return type == TYPE_I32 ? I32 : type == TYPE_ALIKE || type == TYPE_STORED ? common_type(p, op, TYPE_ALIKE) : F32;
}

static bool fits(const struct op *op, enum op_type type, enum dtype have, enum dtype alike, enum dtype operands)
{
    switch (type) {
    case TYPE_F32: return have == F32;
    case TYPE_I32: return have == I32;
    case TYPE_ALIKE: return have == alike && have != I32;
    case TYPE_STORED: return have == alike || (dtype_is_narrow(have) && alike == F32);
    case TYPE_OPERAND: return op->attrs.round == ROUND_BF16 ? have == F32 || have == BF16 : have == operands && have != I32;
    case TYPE_ANY: return have != I32;
    case TYPE_NARROW: return dtype_is_narrow(have);
    case TYPE_WHATEVER: return true;
    }
    return false;
}

/* The first value of an op whose type does not fit; NO_VALUE: all do. An op whose like-typed values are outputs alone goes by the first. */
value_id op_mistyped_value(const struct program *p, const struct op *op)
{
    enum dtype alike = common_type(p, op, TYPE_ALIKE);
    const enum dtype operands = common_type(p, op, TYPE_OPERAND);
    bool known = false;
    for (int i = 0; i < op->n_in; i++)
        known |= op_in_type(op, i) == TYPE_ALIKE;
    for (int i = 0; i < op->n_out && !known; i++)
        if (op_out_type(op, i) == TYPE_ALIKE) {
            alike = p->values[op->out[i]].dtype;
            known = true;
        }
    for (int i = 0; i < op->n_in; i++)
        if (!fits(op, op_in_type(op, i), p->values[op->in[i]].dtype, alike, operands))
            return op->in[i];
    for (int i = 0; i < op->n_out; i++)
        if (!fits(op, op_out_type(op, i), p->values[op->out[i]].dtype, alike, operands))
            return op->out[i];
    return NO_VALUE;
}

/* Is every narrow value of the op bf16 that its products would have rounded, or a result or a copy of a parameter for such products? */
bool op_is_rounded_ahead(const struct program *p, const struct op *op)
{
    const bool rounds = op->attrs.round == ROUND_BF16;
    bool is = common_type(p, op, TYPE_ALIKE) == F32;
    for (int i = 0; i < op->n_in; i++) {
        const enum dtype type = p->values[op->in[i]].dtype;
        const enum op_type may = op_in_type(op, i);
        is = is && (!dtype_is_narrow(type) || (type == BF16 && (may == TYPE_NARROW || (may == TYPE_OPERAND && rounds))));
    }
    for (int i = 0; i < op->n_out; i++) {
        const enum dtype type = p->values[op->out[i]].dtype;
        const enum op_type may = op_out_type(op, i);
        is = is && (!dtype_is_narrow(type) || (type == BF16 && (may == TYPE_NARROW || may == TYPE_STORED)));
    }
    return is;
}

enum numbers op_numbers(const struct program *p, const struct op *op)
{
    static const enum numbers of_type[] = {[F32] = NUMBERS_F32, [BF16] = NUMBERS_BF16, [F16] = NUMBERS_F16, [I32] = NUMBERS_F32};
    static const enum numbers of_rounding[] = {
        [ROUND_NO] = NUMBERS_F32, [ROUND_TF32] = NUMBERS_TF32, [ROUND_BF16] = NUMBERS_BF16};
    const enum numbers operands = of_type[common_type(p, op, TYPE_OPERAND)], values = of_type[common_type(p, op, TYPE_ALIKE)];
    if (op->attrs.round != ROUND_NO)
        return of_rounding[op->attrs.round];
    return operands != NUMBERS_F32 ? operands : op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD || op->kind == OP_ATTEND_KV ? values : NUMBERS_F32;
}
