/* Batches on their way into programs: which program a batch is for, and its inputs. */
#include "core/setup.h"
#include "passes/passes.h"
#include "train/train_int.h"

/* A step of a shorter length is to plan no more than the longest does: memory is that one's. */
static enum status shorter_step(struct program **out, const struct config *c, void *context, struct error *err)
{
    const struct model_run *r = context;
    struct config shorter = *c;
    int unsaid[PASSES_MAX] = {0};
    shorter.optimize.memory = (int64_t)(pass_planned_bytes(exec_program(r->train)) / 1e6) + 1;
    return step_program_for(out, &shorter, r->total_steps, &(struct step_for){.like = exec_program(r->train)}, unsaid, err);
}

enum status model_run_open_lengths(struct model_run *r, struct error *err)
{
    const struct lengths_maker make = {&r->config, r->backend, shorter_step, r};
    r->last = r->train;
    if (r->config.data.pack == PACK_ON) {           /* all rows are of seq tokens */
        r->train_lengths = (struct lengths){.longest = r->train};
        return OK;
    }
    return lengths_open(&r->train_lengths, r->dataset, &make, r->train, err);
}

void batch_upload(struct exec *e, const struct batch *b)
{
    const struct program *p = exec_program(e);
    exec_write(e, p->tokens, b->tokens);
    exec_write(e, p->targets, b->targets);
    if (p->segments != NO_VALUE)
        exec_write(e, p->segments, b->segments);
    if (p->starts != NO_VALUE)
        exec_write(e, p->starts, b->starts);
    if (p->positions != NO_VALUE)
        exec_write(e, p->positions, b->positions);
    if (p->types != NO_VALUE)
        exec_write(e, p->types, b->types);
    if (p->features != NO_VALUE)
        exec_write(e, p->features, b->features);
}

/* The program of a batch. One of packed samples that need more rows than usual is made when it is first needed. */
static enum status program_for(struct model_run *r, const struct batch *b, struct error *err)
{
    struct config many = r->config;
    struct program *p;
    if (!b->starts || b->rows == r->config.model.rows) {
        r->last = lengths_find(&r->train_lengths, b->starts ? r->config.model.seq : b->seq);
        return OK;
    }
    many.model.rows = b->rows;
    enum status st = OK;
    const struct step_for as = {r->backend, exec_program(r->train)};
    setup_insist(true);                     /* the run goes on: who says stop is heard when the step is done */
    if (!r->overflow && (st = step_program_for(&p, &many, r->total_steps, &as, NULL, err)) == OK &&
        (st = exec_new(&r->overflow, p, r->backend, r->train, err)) != OK)
        program_free(p);
    setup_insist(false);
    if (st == OK)
        r->last = r->overflow;
    return st;
}

enum status model_run_take(struct model_run *r, const struct batch *b, struct error *err)
{
    const enum status st = program_for(r, b, err);
    if (st != OK)
        return st;
    r->fill.positions += (double)(b->rows * b->seq);
    r->fill.filled += (double)b->filled;
    if (r->last != r->train)
        exec_refresh(r->train);
    batch_upload(r->last, b);
    return OK;
}
