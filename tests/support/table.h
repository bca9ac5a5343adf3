/* The smallest programs that can be trained: a table of numbers, log-softmax, loss. */
#ifndef HONE_TESTS_TABLE_H
#define HONE_TESTS_TABLE_H

#include "program/program.h"
#include "support/check.h"

static const struct op_attrs NONE = {0};

/* A parameter (ROWS, WIDTH) of normal numbers. */
enum { ROWS = 4, WIDTH = 5 };

static inline value_id add_table(struct program *p, const char *name, enum param_role role)
{
    return program_add_parameter(p, name, shape_of(2, (int64_t)ROWS, (int64_t)WIDTH), role, INIT_NORMAL, 1);
}

static inline void add_loss(struct program *p, value_id x)
{
    const value_id logp = program_emit(p, OP_LOG_SOFTMAX, NONE, "logp", 1, x);
    p->targets = program_add_value(p, "targets", VALUE_INPUT, I32, shape_of(1, (int64_t)ROWS));
    const int at = program_add_op(p, OP_NLL, NONE, "loss", 2, (value_id[]){logp, p->targets});
    assert_true(at >= 0);
    p->loss = p->ops[at].out[0];
    p->count = p->ops[at].out[1];
}

static inline struct program *table_program(enum param_role role)
{
    struct program *p = program_new("table");
    add_loss(p, add_table(p, "w", role));
    return p;
}

static const int32_t TARGETS_OF_TABLE[ROWS] = {1, 0, 4, 2};

static inline int count_ops(const struct program *p, enum op_kind kind, enum phase phase)
{
    int n = 0;
    for (int i = 0; i < p->n_ops; i++)
        n += p->ops[i].kind == kind && p->ops[i].phase == phase;
    return n;
}

#endif
