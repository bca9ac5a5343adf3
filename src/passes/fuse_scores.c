/* One op for the scores of all groups instead of one for each, and one read by the host. A group's units are summed up in the same order,
 * so that the scores have the same bits. */
#include "passes/fuse_scores.h"

#include <stdlib.h>

#include "passes/passes.h"

enum { FIRST_SCORE = 4 };               /* inputs of OP_TOP_K */

/* The choice whose scores are all single ones. */
static int find_choice(const struct rewriter *r)
{
    for (int i = r->first; i != NO_OP; i = rewriter_next(r, i)) {
        const struct op *op = &r->p->ops[i];
        bool all = op->kind == OP_TOP_K && op->n_in > FIRST_SCORE + 1;
        for (int k = FIRST_SCORE; k < op->n_in && all; k++) {
            const int writer = rewriter_writer(r, op->in[k]);
            all = writer >= 0 && r->p->ops[writer].kind == OP_GROUP_SCORES && r->p->ops[writer].attrs.parts == 1;
        }
        if (all)
            return i;
    }
    return NO_OP;
}

/* Members in the order of the squares; what is in no group is in none. */
static struct op_member *join_members(const struct rewriter *r, const value_id *scores, int groups, const value_id *squares, int n)
{
    struct op_member *members = arena_alloc(&r->p->arena, (size_t)n * sizeof *members);
    int *place = xcalloc((size_t)r->p->n_values, sizeof *place);
    for (int i = 0; i < n; i++) {
        members[i] = (struct op_member){-1, 0};
        place[squares[i]] = i;
    }
    for (int j = 0; j < groups; j++) {
        const struct op *op = &r->p->ops[rewriter_writer(r, scores[j])];
        for (int i = 1; i < op->n_in; i++)
            members[place[op->in[i]]] = (struct op_member){j, op->attrs.members[i - 1].unit};
    }
    free(place);
    return members;
}

/* An op that reads all scores one after the other, as a choice and a ring do, reads the one value instead. */
static void read_one(struct rewriter *r, int at, const value_id *scores, int groups, value_id all)
{
    const struct op op = r->p->ops[at];
    value_id *in = xcalloc((size_t)op.n_in, sizeof *in);
    int n = 0;
    for (int i = 0; i < op.n_in; i++)
        if (op.in[i] == scores[0]) {
            in[n++] = all;
            i += groups - 1;
        } else
            in[n++] = op.in[i];
    rewriter_set_inputs(r, at, n, in);
    free(in);
}

/* The host must not find a value that nothing writes any more. */
static void remove_read(struct rewriter *r, int at)
{
    struct program *p = r->p;
    const value_id v = p->ops[at].out[0];
    p->values[v].kind = VALUE_ACTIVATION;
    program_rename(p, v, arena_printf(&p->arena, "unused.%s", p->values[v].name));
    rewriter_remove(r, at);
}

/* Whoever reads the score of a group: the choice, a ring, the host. Returns the reads of the host that went. */
static int move_readers(struct rewriter *r, const value_id *scores, int groups, value_id all)
{
    int reads = 0;
    for (int j = 0; j < groups; j++)
        for (int u = rewriter_first_use(r, scores[j]), next; u != NO_USE; u = next) {
            const int at = r->uses[u].op;
            next = r->uses[u].next;
            if (r->p->ops[at].kind == OP_HOST_READ) {
                remove_read(r, at);
                reads++;
            } else if (j == 0)
                read_one(r, at, scores, groups, all);
        }
    return reads;
}

static void insert_read(struct rewriter *r, int choice, value_id all)
{
    struct program *p = r->p;
    const int at = rewriter_insert(r, choice, OP_HOST_READ, (struct op_attrs){0}, "scores", 1, &all);
    if (at != NO_OP)
        program_rename(p, p->ops[at].out[0], SCORES_READ);
}

int fuse_scores(struct rewriter *r, const value_id *squares, int n, value_id all)
{
    const int choice = find_choice(r);
    if (choice == NO_OP)
        return 0;
    struct program *p = r->p;
    const int groups = p->ops[choice].n_in - FIRST_SCORE;
    value_id *scores = xcalloc((size_t)groups, sizeof *scores);
    for (int j = 0; j < groups; j++)
        scores[j] = p->ops[choice].in[FIRST_SCORE + j];
    const struct op_attrs attrs = {.parts = groups, .n_members = n, .members = join_members(r, scores, groups, squares, n)};
    const value_id in[] = {p->ops[choice].in[FIRST_SCORE - 1], all};
    const int at = rewriter_insert(r, choice, OP_GROUP_SCORES, attrs, "k1.scores", 2, in);
    if (at != NO_OP) {
        if (move_readers(r, scores, groups, p->ops[at].out[0]))
            insert_read(r, choice, p->ops[at].out[0]);
        for (int j = 0; j < groups; j++)
            rewriter_remove(r, rewriter_writer(r, scores[j]));
    }
    free(scores);
    return at != NO_OP;
}
