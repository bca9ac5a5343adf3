/* Pieces of programs that the tests of the rules share. */
#ifndef HONE_TESTS_RULE_PROGRAMS_H
#define HONE_TESTS_RULE_PROGRAMS_H

#include "analyze/rules.h"
#include "passes/passes.h"
#include "support/models.h"
#include "unit/profiled.h"

/* ---- pieces of programs ---- */

static inline value_id matrix(struct program *p, const char *name, int64_t rows, int64_t cols)
{
    return program_add_parameter(p, name, shape_of(2, rows, cols), ROLE_MATRIX, INIT_NORMAL, 0.02f);
}

static inline value_id input(struct program *p, int64_t batch, int64_t seq)
{
    return p->tokens = program_add_value(p, "tokens", VALUE_INPUT, I32, shape_of(2, batch, seq));
}

static inline value_id product(struct program *p, const char *name, value_id x, value_id w)
{
    return program_emit(p, OP_MATMUL, (struct op_attrs){.trans_b = true}, name, 2, x, w);
}

/* tokens (2, 3) -> embedding (2, 3, 4): what most programs here start with. */
static inline value_id embedded(struct program *p)
{
    return program_emit(p, OP_EMBED, NONE, "emb", 2, matrix(p, "table", 5, 4), input(p, 2, 3));
}

static inline value_id with_loss(struct program *p, value_id x)
{
    p->targets = program_add_value(p, "targets", VALUE_INPUT, I32, shape_of(2, (int64_t)2, (int64_t)3));
    p->logits = x;
    const value_id in[] = {program_emit(p, OP_LOG_SOFTMAX, NONE, "logp", 1, x), p->targets};
    const int at = program_add_op(p, OP_NLL, NONE, "loss", 2, in);
    p->count = p->ops[at].out[1];
    return p->loss = p->ops[at].out[0];
}

static inline void assert_valid(const struct program *p)
{
    struct error err;
    assert_ok(program_validate(p, &err), err);
}

static inline void backward(struct program *p)
{
    struct error err;
    assert_ok(pass_autodiff(p, &err), err);
    assert_valid(p);
}

static inline int op_of_kind(const struct program *p, enum op_kind kind, int nth)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == kind && nth-- == 0)
            return i;
    fail_msg("the program has too few ops of kind %d", (int)kind);
    return -1;
}

#endif
