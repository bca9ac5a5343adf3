/* Trees of which some nodes are selected: programs, who was selected, and what was left as it was. */
#ifndef HONE_TESTS_SELECT_H
#define HONE_TESTS_SELECT_H

#include "support/optimized.h"

enum { NODES = 10, MOST_VALUES = 8192 };       /* of the small tree */

static inline struct optimizer_settings select_settings(int k, bool sum)
{
    struct optimizer_settings s = small_settings();
    s.select = (struct selection){.k = k, .sum = sum, .every = 1, .seed = 42};
    return s;
}

static inline struct program *select_training(const struct optimizer_settings *s, pass_set set, const int *order)
{
    return optimized_training(small_models[SMALL_K1], s, set, order, NULL);
}

static inline void run_micro_batches(struct exec *e, uint64_t stream)
{
    for (int i = 0; i < exec_program(e)->micro_batches; i++) {
        const struct small_batch batch = random_batch(&small_models[SMALL_K1], (stream * 8 + (uint64_t)i) % 40);
        write_batch(e, &batch);
        exec_run(e, PHASE_DATA, PHASE_BACKWARD);
    }
}

static inline void run_step(struct exec *e, int step)
{
    run_micro_batches(e, (uint64_t)step);
    exec_run(e, PHASE_OPTIMIZE, PHASE_OPTIMIZE);
}

/* Bit j: node j was updated in the step that the program counts. */
static inline unsigned selected_now(struct exec *e)
{
    const struct program *p = exec_program(e);
    int32_t *last = read_value(e, program_find(p, K1_LAST)), *step = read_value(e, p->step);
    unsigned set = 0;
    for (int j = 0; j < NODES; j++)
        set |= (unsigned)(last[j] == *step) << j;
    free(last);
    free(step);
    return set;
}

static inline int count_bits(unsigned set)
{
    int n = 0;
    for (; set; set &= set - 1)
        n++;
    return n;
}

/* The node that a value that is saved belongs to, by its name: a parameter, its moments, its narrow copy. NO_LAYER: none. */
static inline int node_of(const char *name)
{
    const char *at = strstr(name, "blocks.");
    return at ? atoi(at + 7) : NO_LAYER;
}

static inline bool is_of_node(const struct value *v)
{
    return (v->kind == VALUE_PARAMETER || v->kind == VALUE_STATE || v->kind == VALUE_TABLE) && !is_sum(v) && node_of(v->name) != NO_LAYER;
}

/* A hash of every node: its weights, their moments and copies. */
static inline void hash_nodes(struct exec *e, uint64_t hash[NODES])
{
    const struct program *p = exec_program(e);
    for (int j = 0; j < NODES; j++)
        hash[j] = 14695981039346656037u;
    for (int i = 0; i < p->n_values; i++) {
        if (!is_of_node(&p->values[i]))
            continue;
        uint64_t *h = &hash[node_of(p->values[i].name)];
        unsigned char *bytes = read_value(e, i);
        for (size_t k = 0; k < value_bytes(&p->values[i]); k++)
            *h = (*h ^ bytes[k]) * 1099511628211u;
        free(bytes);
    }
}

/* How many nodes that were not selected have changed between two hashes. */
static inline int count_touched(const uint64_t before[NODES], const uint64_t after[NODES], unsigned selected)
{
    int n = 0;
    for (int j = 0; j < NODES; j++)
        n += before[j] != after[j] && !(selected >> j & 1);
    return n;
}

#endif
