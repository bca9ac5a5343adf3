/* What a graph is made of: ops, and the pieces of those that can run in pieces (kernel.h), with the memory that each touches. */
#include <stdlib.h>

#include "ops/cuda/cuda_int.h"
#include "ops/cuda/reductions.h"

struct maker {
    struct cuda_items *out;
    struct cuda_backend *b;
    const struct prepared *p;
    struct replay *r;
    bool sparing;                   /* there is little memory: what would keep much from piece to piece runs as a whole */
};

static const struct cuda_pieces *pieces_of(const struct maker *m, int op) { return cuda_pieces_of(m->p->ops[op].op->kind); }

static int count_pieces(const struct maker *m, int op)
{
    const struct cuda_pieces *s = pieces_of(m, op);
    const struct bound_op *b = &m->p->ops[op];
    if (!s || (m->sparing && s->own && s->own(b->program, b->op) > LANE_SCRATCH))
        return 1;
    return s->count(b->program, b->op);
}

static size_t own_bytes(const struct maker *m, int op)
{
    const struct cuda_pieces *s = pieces_of(m, op);
    const size_t bytes = s && s->own && count_pieces(m, op) > 1 ? s->own(m->p->ops[op].program, m->p->ops[op].op) : 0;
    return (bytes + 255) / 256 * 256;
}

/* Calls with what is their own, in one memory for all. */
static bool make_calls(struct maker *m)
{
    const int first = m->r->first, n = m->r->end - first;
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += own_bytes(m, first + i);
    m->out->calls = calloc((size_t)n + 1, sizeof *m->out->calls);
    m->r->own = bytes ? cuda_alloc(&m->b->base, bytes) : NULL;
    if (!m->out->calls || (bytes && !m->r->own))
        return false;
    char *at = m->r->own;
    for (int i = 0; i < n; i++) {
        const size_t own = own_bytes(m, first + i);
        m->out->calls[i] = m->p->calls[first + i];
        m->out->calls[i].own = own ? at : NULL;
        at += own;
    }
    return true;
}

static bool make_room(struct maker *m)
{
    size_t pieces = 0, touches = 0;
    for (int i = m->r->first; i < m->r->end; i++) {
        const struct op *op = m->p->ops[i].op;
        const size_t n = (size_t)count_pieces(m, i);
        pieces += n;
        touches += n * ((size_t)op->n_in + (size_t)op->n_out + 4 + 2 * SUMS_MOST + BIASES_MOST);
        for (int j = 0; j < m->p->calls[i].n_also; j++)
            touches += (size_t)m->p->calls[i].also[j]->op->n_in + (size_t)m->p->calls[i].also[j]->op->n_out + 1;
    }
    m->out->pieces = calloc(pieces + 1, sizeof *m->out->pieces);
    m->out->list = calloc(pieces + 1, sizeof *m->out->list);
    m->out->touches = calloc(touches + 1, sizeof *m->out->touches);
    return m->out->pieces && m->out->list && m->out->touches;
}

/* Of an op that does work of others, what it touches for that, too. Sums over ranks start in their order; where the host waits for them, it
 * does so behind all starts. */
static int touches_of_op(const struct maker *m, int op, struct lane_touch *out)
{
    const struct bound_op *b = &m->p->ops[op];
    const struct cuda_call *call = &m->p->calls[op];
    const struct value *values = b->program->values;
    int n = 0;
    for (int i = 0; i < b->op->n_in; i++)
        out[n++] = (struct lane_touch){b->in[i], value_bytes(&values[b->op->in[i]]), false};
    for (int i = 0; i < b->op->n_out; i++)
        out[n++] = (struct lane_touch){b->out[i], value_bytes(&values[b->op->out[i]]), true};
    if (call->leave)
        out[n++] = (struct lane_touch){call->leave, sizeof *call->leave, false};
    if (call->beside)
        out[n++] = (struct lane_touch){call->beside, value_bytes(&values[b->op->out[0]]), false};
    if (call->casts)
        out[n++] = (struct lane_touch){call->casts[0].to, call->casts_bytes, true};
    for (int i = 0; i < BIASES_MOST && call->biases[i]; i++)
        out[n++] = (struct lane_touch){call->biases[i], 1, false};
    if (call->parts)
        out[n++] = (struct lane_touch){call->parts, call->parts_bytes, b->op->kind == OP_PROJECT_GRAD};
    for (int i = 0; i < call->sums.n; i++) {
        out[n++] = (struct lane_touch){call->sums.to[i], call->sums.to_bytes, true};
        if (call->sums.of[i])
            out[n++] = (struct lane_touch){call->sums.of[i], call->sums.of_bytes, false};
    }
    if ((call->reduction || call->gather) && (b->op->kind == OP_REDUCE_START || b->op->kind == OP_GATHER_START || !m->b->comm.nccl))
        out[n++] = (struct lane_touch){&m->b->comm, 1, true};
    for (int i = 0; i < call->n_also; i++) {
        if (call->also[i]->leave)
            out[n++] = (struct lane_touch){call->also[i]->leave, sizeof *call->leave, false};
        for (int j = 0; j < call->also[i]->op->n_in; j++)
            out[n++] = cuda_touch_in(call->also[i], j);
        for (int j = 0; j < call->also[i]->op->n_out; j++)
            out[n++] = (struct lane_touch){call->also[i]->out[j], value_bytes(cuda_out(call->also[i], j)), true};
    }
    return n;
}

/* What is done together takes about a third of its time. */
static double guess_us(const struct maker *m, int op)
{
    const enum op_kind kind = m->p->ops[op].op->kind;
    double us = lanes_guess_us(m->p->ops[op].program, m->p->ops[op].op);
    if ((kind == OP_REDUCE_START || kind == OP_REDUCE_WAIT) && cuda_reduction_is_free(&m->p->calls[op]))
        us = 0;
    for (int i = 0; i < m->p->calls[op].n_also; i++)
        us += lanes_guess_us(m->p->calls[op].also[i]->program, m->p->calls[op].also[i]->op);
    return m->p->calls[op].n_also ? us / 3 : us;
}

static size_t scratch_of(const struct maker *m, int op, int piece)
{
    const struct bound_op *b = &m->p->ops[op];
    const struct cuda_kernel *k = m->p->kernels[op];
    const size_t more = m->p->calls[op].sums.scratch;
    if (piece >= 0 && pieces_of(m, op)->scratch)
        return pieces_of(m, op)->scratch(b->program, b->op, piece);
    const size_t bytes = k->scratch ? k->scratch(b->program, b->op) : 0;
    return bytes > more ? bytes : more;
}

/* Ops whose work others do are not among them. */
static void list_items(struct maker *m)
{
    struct lane_touch *at = m->out->touches;
    for (int i = m->r->first; i < m->r->end; i++) {
        const int n = m->p->calls[i].merged ? 0 : count_pieces(m, i);
        for (int j = 0; j < n; j++, m->out->n++) {
            const int touched = n > 1 ? pieces_of(m, i)->touches(&m->out->calls[i - m->r->first], j, at) : touches_of_op(m, i, at);
            m->out->pieces[m->out->n] = (struct cuda_piece){i, n > 1 ? j : -1};
            m->out->list[m->out->n] =
                (struct lane_item){at, touched, scratch_of(m, i, n > 1 ? j : -1), guess_us(m, i) / n};
            at += touched;
        }
    }
}

bool cuda_items_make(struct cuda_items *out, struct cuda_backend *b, const struct prepared *p, struct replay *r)
{
    struct maker m = {out, b, p, r, false};
    if (!make_calls(&m)) {
        cudaGetLastError();         /* there is another way */
        free(out->calls);
        m.sparing = true;
        if (!make_calls(&m))
            return false;
    }
    if (!make_room(&m))
        return false;
    list_items(&m);
    return true;
}

void cuda_items_release(struct cuda_items *items)
{
    free(items->calls);
    free(items->pieces);
    free(items->list);
    free(items->touches);
}

/* ---- before anything is bound ---- */

/* Scratch of each op as a whole: that of its pieces is no more. */
size_t cuda_beside(struct backend *base, const struct program *p)
{
    const struct cuda_backend *b = (const struct cuda_backend *)base;
    size_t *scratch = calloc((size_t)p->n_ops + 1, sizeof *scratch), own = b->merges ? cuda_parts_most_bytes(p) : 0;
    struct error ignored;
    if (!scratch || !cuda_captures_program(b, p) || b->lanes < 2 || !p->fewer_meetings) {
        free(scratch);
        return own;
    }
    for (int i = 0; i < p->n_ops; i++) {
        const struct cuda_pieces *s = cuda_pieces_of(p->ops[i].kind);
        if (s && s->own && s->count(p, &p->ops[i]) > 1)
            own += (s->own(p, &p->ops[i]) + 255) / 256 * 256;
        if (cuda_scratch(base, &scratch[i], p, &p->ops[i], &ignored) != OK)
            scratch[i] = 0;
    }
    own += lanes_most_bytes(scratch, p->n_ops, b->lanes, WORKSPACE);
    free(scratch);
    return own;
}
