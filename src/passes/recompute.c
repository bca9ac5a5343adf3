/* recompute: where a step would need more memory than it may, activations of layers are not kept for the backward but computed
 * again right before it, by copies of the layer's forward ops. The numbers are the same to the last bit.
 *
 * What the backward of a layer reads of its own forward is needed; the forward ops that lead to it are copied, back to values
 * that are there anyway: inputs of the layer, and what the backward of other layers reads. There are three forms, from the one
 * that costs least to the one that saves most: results of products are kept and only what is made of them by element is computed
 * again; results of attention alone are kept; nothing is kept. A form is tried on one layer after the other before the next one.
 * Layers are taken from the first on, because their activations would live longest: when the backward comes to them, those of
 * later layers are gone. */
#include <stdlib.h>
#include <string.h>

#include "core/setup.h"
#include "passes/optimize.h"
#include "passes/passes.h"
#include "passes/recompute.h"

/* ---- a trial ---- */

static void restore(struct search *s)
{
    memcpy(s->p->ops, s->ops, (size_t)s->n_ops * sizeof *s->ops);
    s->p->n_ops = s->n_ops;
    program_keep_values(s->p, s->n_values);
    memcpy(s->kept, s->read_elsewhere, (size_t)s->n_values * sizeof *s->kept);
    memset(s->needed, 0, (size_t)s->n_values * sizeof *s->needed);
    memset(s->copy, 0xff, (size_t)s->n_values * sizeof *s->copy);               /* all NO_VALUE */
    memset(s->copies, 0, (size_t)s->layers * sizeof *s->copies);
}

/* Every layer's copies go from the end of the list to their place. */
static void move_copies(const struct search *s)
{
    struct program *p = s->p;
    struct op *ops = xcalloc((size_t)p->cap_ops, sizeof *ops);
    int *layer_before = xcalloc((size_t)s->n_ops, sizeof *layer_before), n = 0;         /* per op: the layer + 1; 0: none */
    for (int i = 0; i < s->layers; i++)
        if (s->copies[i].to > s->copies[i].from)
            layer_before[s->copies[i].before] = i + 1;
    for (int i = 0; i < s->n_ops; i++) {
        const struct copies c = layer_before[i] ? s->copies[layer_before[i] - 1] : (struct copies){0};
        memcpy(ops + n, p->ops + c.from, (size_t)(c.to - c.from) * sizeof *ops);
        n += c.to - c.from;
        ops[n++] = p->ops[i];
    }
    free(layer_before);
    free(p->ops);
    p->ops = ops;
}

/* Depth d is the first form in the first d layers; beyond the number of layers, the next form in the first of them, and so on.
 * From the last layer to the first, so that it is known what the backward of the next one reads. */
static int apply(struct search *s, int depth)
{
    int changed = 0;
    restore(s);
    for (int i = (depth < s->layers ? depth : s->layers) - 1; i >= 0; i--)
        changed += recompute_layer(s, i, (enum form)((depth - 1 - i) / s->layers));
    move_copies(s);
    return changed;
}

/* ---- how many layers ---- */

static double bytes_at(struct search *s, int depth)
{
    if (!setup_goes_on("recompute"))
        return 0;                       /* the shortest way to the end */
    apply(s, depth);
    const double bytes = pass_planned_bytes(s->p);
    if (bytes < s->least) {
        s->least = bytes;
        s->best = depth;
    }
    return bytes;
}

/* More layers in one form need less memory, but for the last layer, whose copies may live beside the loss. */
static bool fits_in_form(struct search *s, int form)
{
    const double limit = s->p->memory_limit;
    return bytes_at(s, (form + 1) * s->layers) <= limit || (s->layers > 1 && bytes_at(s, (form + 1) * s->layers - 1) <= limit);
}

/* The lowest depth that stays within the limit, or the one with the smallest plan. */
static int find_depth(struct search *s)
{
    int form = 0;
    while (form < FORMS && !fits_in_form(s, form))
        form++;
    if (form == FORMS)
        return s->best;
    int low = form * s->layers, high = s->best;             /* low does not fit, high does */
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        *(bytes_at(s, middle) <= s->p->memory_limit ? &high : &low) = middle;
    }
    return high;
}

static int count_layers(const struct program *p)
{
    int last = NO_LAYER;
    for (int i = 0; i < p->n_ops; i++)
        last = p->ops[i].layer > last ? p->ops[i].layer : last;
    return last + 1;
}

/* ---- the program as it was ---- */

/* The heap of an op, by its output k; -1: none. */
typedef int heap_fn(const struct search *s, const struct op *op, int k);

/* In two rounds: sizes, then items. */
static struct heaps sort_into(const struct search *s, int n_heaps, heap_fn *heap_of)
{
    struct heaps h = {.start = xcalloc((size_t)n_heaps + 2, sizeof(int))};
    for (int fill = 0; fill < 2; fill++) {
        for (int i = 0; i < s->n_ops; i++)
            for (int k = 0; k < s->ops[i].n_out; k++) {
                const int heap = heap_of(s, &s->ops[i], k);
                if (heap >= 0 && fill)
                    h.item[h.start[heap + 1]++] = i;
                else if (heap >= 0)
                    h.start[heap + 2]++;
            }
        for (int i = 2; i < n_heaps + 2 && !fill; i++)
            h.start[i] += h.start[i - 1];
        if (!fill)
            h.item = xcalloc((size_t)h.start[n_heaps + 1] + 1, sizeof(int));
    }
    return h;
}

static int forward_layer(const struct search *s, const struct op *op, int k)
{
    (void)s;
    return k == 0 && op->phase == PHASE_FORWARD ? op->layer : -1;
}

static int backward_layer(const struct search *s, const struct op *op, int k)
{
    (void)s;
    return k == 0 && op->phase == PHASE_BACKWARD ? op->layer : -1;
}

static int changed_value(const struct search *s, const struct op *op, int k)
{
    return op->phase <= PHASE_BACKWARD && value_is_persistent(&s->p->values[op->out[k]]) ? op->out[k] : -1;
}

static void find_owners(struct search *s)
{
    const struct program *p = s->p;
    for (int i = 0; i < p->n_values; i++)
        s->made_in[i] = NO_LAYER;
    for (int i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        for (int k = 0; k < op->n_out && op->phase == PHASE_FORWARD; k++)
            if (!value_is_persistent(&p->values[op->out[k]]))
                s->made_in[op->out[k]] = op->layer;
        for (int k = 0; k < op->n_in && op->phase > PHASE_FORWARD; k++)
            s->read_elsewhere[op->in[k]] |= op->phase != PHASE_BACKWARD || op->layer != s->made_in[op->in[k]];
    }
}

static void search_init(struct search *s, struct program *p)
{
    const size_t values = (size_t)p->n_values;
    *s = (struct search){.p = p, .n_ops = p->n_ops, .n_values = p->n_values, .layers = count_layers(p),
                         .ops = xcalloc((size_t)p->n_ops, sizeof *s->ops), .made_in = xcalloc(values, sizeof *s->made_in),
                         .read_elsewhere = xcalloc(values, sizeof *s->read_elsewhere), .kept = xcalloc(values, sizeof *s->kept),
                         .needed = xcalloc(values, sizeof *s->needed), .copy = xcalloc(values, sizeof *s->copy)};
    memcpy(s->ops, p->ops, (size_t)p->n_ops * sizeof *s->ops);
    s->copies = xcalloc((size_t)s->layers, sizeof *s->copies);
    s->forward = sort_into(s, s->layers, forward_layer);
    s->backward = sort_into(s, s->layers, backward_layer);
    s->changes = sort_into(s, s->n_values, changed_value);
    find_owners(s);
}

static void search_release(struct search *s)
{
    const struct heaps heaps[] = {s->forward, s->backward, s->changes};
    for (int i = 0; i < 3; i++) {
        free(heaps[i].start);
        free(heaps[i].item);
    }
    free(s->ops);
    free(s->made_in);
    free(s->read_elsewhere);
    free(s->kept);
    free(s->needed);
    free(s->copy);
    free(s->copies);
}

int pass_recompute(struct program *p)
{
    struct search s;
    const double whole = p->memory_limit > 0 ? pass_planned_bytes(p) : 0;
    if (whole <= p->memory_limit || count_layers(p) == 0)
        return 0;
    search_init(&s, p);
    s.least = whole;
    const int changed = apply(&s, find_depth(&s));
    search_release(&s);
    return changed;
}
