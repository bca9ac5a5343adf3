/* What ops cost: FLOPs, and the bytes that they move. Transcendental functions count as one FLOP, as is usual. */
#include "program/ops_int.h"

/* ---- FLOPs ---- */

double flops_none(const struct program *p, const struct op *op) { (void)p, (void)op; return 0; }
double flops_per_element(const struct program *p, const struct op *op) { return (double)in_count(p, op, 0); }
double flops_few(const struct program *p, const struct op *op) { return 4.0 * flops_per_element(p, op); }
double flops_many(const struct program *p, const struct op *op) { return 8.0 * flops_per_element(p, op); }
double flops_per_input(const struct program *p, const struct op *op) { return (double)op->n_in * flops_per_element(p, op); }
double flops_per_third(const struct program *p, const struct op *op) { return (double)in_count(p, op, 2); }
double flops_per_output(const struct program *p, const struct op *op)
{
    return (double)shape_count(p->values[op->out[0]].shape);
}

double flops_matmul(const struct program *p, const struct op *op)
{
    const struct shape a = in_shape(p, op, 0);
    const double k = (double)(op->attrs.trans_a ? shape_rows(a) : shape_last(a));
    return flops_per_output(p, op) * (2 * k + (op->n_in > 2));
}

/* Every score takes one dot product of head size; the same for the two mixes. */
double flops_attn(const struct program *p, const struct op *op)
{
    const bool scores = op->kind == OP_ATTN_SCORES;
    const struct shape w = scores ? p->values[op->out[0]].shape : in_shape(p, op, 0);
    const struct shape x = in_shape(p, op, scores ? 0 : 1);
    const double head = (double)x.dim[2] / (op->kind == OP_ATTN_MIX ? op->attrs.kv_heads : op->attrs.heads);
    return 2.0 * (double)shape_count(w) * head;
}

/* Two FLOPs per element of a weight and row of the input or gradient. */
double flops_project(const struct program *p, const struct op *op)
{
    const int n = parts(op), first = op->kind == OP_PROJECT ? 1 : n;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += 2 * (double)in_count(p, op, first + i);
    return sum * (double)shape_rows(in_shape(p, op, 0));
}

/* The two products forward, five backward (scores again); half of them under a causal mask. Of packed samples: by their mean length, cols. */
double flops_attention(const struct program *p, const struct op *op)
{
    const bool back = op->kind == OP_ATTENTION_GRAD;
    const struct shape q = in_shape(p, op, back);
    const double seen = (double)(op->attrs.packed && op->attrs.cols ? op->attrs.cols : q.dim[1]);
    return (back ? 10.0 : 4.0) * (double)shape_count(q) * seen * (op->attrs.causal ? 0.5 : 1);
}

double flops_linear_gelu(const struct program *p, const struct op *op)
{
    return flops_per_output(p, op) * (2.0 * (double)shape_last(in_shape(p, op, 0)) + (parts(op) == 2 ? 16 : 9));
}

double flops_linear_loss(const struct program *p, const struct op *op)
{
    const double rows = (double)shape_rows(in_shape(p, op, 0)), weights = (double)in_count(p, op, 1);
    const double logits = rows * (double)in_shape(p, op, 1).dim[0];
    return 2 * rows * weights * (parts(op) == 4 ? 3 : 1) + 8 * logits;
}

double flops_squares(const struct program *p, const struct op *op)
{
    double sum = 0;
    for (int i = 0; i < op->n_in; i++)
        sum += (double)in_count(p, op, i);
    return sum;
}

/* Of tensor i of an update: what is updated, on the average over steps, where attrs.k groups are selected. */
static double updated_share(const struct program *p, const struct op *op, int i)
{
    if (!op->attrs.masked || input(p, op, i)->group < 0)
        return 1;
    return (double)op->attrs.k / (double)in_count(p, op, op_update_scalars(op) + 3);
}

double flops_shards(const struct program *p, const struct op *op)     /* one product and one sum, most of the time */
{
    return 2 * flops_per_element(p, op);
}

double flops_adamw(const struct program *p, const struct op *op)
{
    double sum = 0;
    for (int i = 0; i < op_update_tensors(op); i++)
        sum += 8 * (double)in_count(p, op, op_update_tensors(op) + i) * updated_share(p, op, i);
    return sum;
}

static double count_outputs(const struct program *p, const struct op *op)
{
    double sum = 0;
    for (int i = 0; i < op->n_out; i++)
        sum += (double)shape_count(p->values[op->out[i]].shape);
    return sum;
}

double flops_reduce_wait(const struct program *p, const struct op *op) { return count_outputs(p, op); }

/* ---- bytes where "every value once" is wrong ---- */

static double value_traffic(const struct program *p, value_id id) { return (double)value_bytes(&p->values[id]); }

double bytes_embed(const struct program *p, const struct op *op)     /* reads only the rows it needs */
{
    return value_traffic(p, op->in[1]) + 2 * value_traffic(p, op->out[0]);
}

double bytes_embed_grad(const struct program *p, const struct op *op)    /* the table gives its shape alone */
{
    return value_traffic(p, op->in[1]) + value_traffic(p, op->in[2]) + value_traffic(p, op->out[0]);
}

double bytes_nll(const struct program *p, const struct op *op)       /* one number per row */
{
    return 2 * value_traffic(p, op->in[1]);
}

double bytes_nll_grad(const struct program *p, const struct op *op)  /* writes all, reads targets */
{
    return value_traffic(p, op->in[1]) + value_traffic(p, op->out[0]);
}

double bytes_output(const struct program *p, const struct op *op) { return value_traffic(p, op->out[0]); }

double bytes_sum_leading(const struct program *p, const struct op *op)
{
    return value_traffic(p, op->in[0]) + value_traffic(p, op->out[0]);
}

/* A tensor's inputs and outputs stand one number of tensors apart, and its moments are as long as what is updated of it; copies, of the first tensors alone, in between. */
double bytes_adamw(const struct program *p, const struct op *op)
{
    const int n = op_update_tensors(op), copies = op->attrs.copies;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double one = value_traffic(p, op->in[n + i]), copy = i < copies ? value_traffic(p, op->in[3 * n + i]) : 0;
        sum += (7 * one + copy) * updated_share(p, op, i);            /* a copy is only written */
    }
    for (int i = op_update_scalars(op); i < op->n_in; i++)
        sum += value_traffic(p, op->in[i]);
    return sum;
}

double bytes_keep(const struct program *p, const struct op *op)      /* one row */
{
    return 2 * (double)shape_last(in_shape(p, op, 0)) * 4 + value_traffic(p, op->in[1]);
}

double bytes_shards(const struct program *p, const struct op *op)     /* x and the first sum, most of the time */
{
    return value_traffic(p, op->in[parts(op) + 1]) + 2 * value_traffic(p, op->out[0]);
}

double bytes_reduce_wait(const struct program *p, const struct op *op)   /* the last inputs give their shapes alone */
{
    return 2 * 4 * count_outputs(p, op);
}

/* Of what a rank has it sends its slice; what it waits for are the others'. */
double bytes_gather_start(const struct program *p, const struct op *op)
{
    (void)p;
    return 4 * (double)op->attrs.cuts[op->attrs.n_cuts - 1] / (op->attrs.n_cuts - 1);
}

double bytes_gather_wait(const struct program *p, const struct op *op)
{
    double copies = 0;                      /* of which each is read as its parameter, and written */
    for (int i = op->attrs.parts; i < op->n_in; i++)
        copies += 6 * (double)in_count(p, op, i);
    return 4 * (double)op->attrs.cuts[op->attrs.n_cuts - 1] - bytes_gather_start(p, op) + copies;
}

/* ---- of any op ---- */

double op_gradient_share(const struct program *p, const struct op *op)
{
    if (op->kind != OP_LINEAR_LOSS || parts(op) != 4)
        return op->phase == PHASE_BACKWARD ? 1 : 0;
    struct op forward = *op;
    forward.attrs.parts = 2;
    return 1 - flops_linear_loss(p, &forward) / flops_linear_loss(p, op);
}

static double needed_share(const struct op *op) { return op->leave ? op->leave->share : 1; }

double op_flops(const struct program *p, const struct op *op) { return op_info(op->kind)->flops(p, op) * needed_share(op); }

double op_bytes(const struct program *p, const struct op *op)
{
    const struct op_info *info = op_info(op->kind);
    if (info->bytes)
        return info->bytes(p, op) * needed_share(op);
    double sum = 0;
    for (int i = 0; i < op->n_in; i++)
        sum += value_traffic(p, op->in[i]);
    for (int i = 0; i < op->n_out; i++)
        sum += value_traffic(p, op->out[i]);
    return sum * needed_share(op);
}
