/* Fixes as code for the program at hand. Texts of rules are written for AdamW on 'cuda'; here the user's own names take their place. */
#include "analyze/traced/fix_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- the user's names ---- */

enum { MOST_NAME = 60 };

/* "Optimizer.step#AdamW.step" -> AdamW; only what can be a class. */
static const char *optimizer_in(const struct study *s, const char *name)
{
    static const char head[] = "Optimizer.step#";
    if (strncmp(name, head, sizeof head - 1))
        return NULL;
    name += sizeof head - 1;
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    return n && n < MOST_NAME && !isdigit((unsigned char)name[0]) ? study_text(s, "%.*s", (int)n, name) : NULL;
}

static const char *device_name(const struct study *s)
{
    if (!s->v->n_device)
        return s->d->device_lost ? "cuda" : "cpu";      /* launches without work: it was there */
    if (s->device.maker != MAKER_OTHER)
        return "cuda";                      /* ROCm goes by this name, too */
    for (int32_t i = 0; i < s->v->n_host; i++) {
        const char *name = view_name(s->v, i);
        if (view_event(s->v, i)->kind == EVENT_RUNTIME && strcasestr(name, "mtia"))
            return "mtia";
    }
    return "xpu";
}

struct fix_facts fix_facts_of(const struct study *s)
{
    struct fix_facts f = {.device = device_name(s), .maker = s->device.maker, .no_bf16 = !s->device.bf16, .compiled = s->uses.compiled,
                          .some_graphs = s->uses.graphs >= 0.05};
    for (int32_t i = 0; i < s->v->trace->n_names && !f.optimizer; i++)
        f.optimizer = optimizer_in(s, s->v->trace->names[i]);
    return f;
}

/* ---- texts for what is there ---- */

static const char *precision_fix(const struct fix_facts *f)
{
    if (f->maker == MAKER_AMD)
        return "with torch.autocast('cuda', dtype=torch.bfloat16):    # ROCm goes by this name; matrix cores take bf16 on Instinct\n"
               "    loss = model(x, y)\n"
               "loss.backward()";
    if (f->no_bf16)
        return "scaler = torch.amp.GradScaler('cuda')                 # this device has no units for bf16 and TF32: fp16, with scaled losses\n"
               "with torch.autocast('cuda', dtype=torch.float16):\n"
               "    loss = model(x, y)\n"
               "scaler.scale(loss).backward()\n"
               "scaler.step(optimizer)\n"
               "scaler.update()";
    if (f->tf32)
        return "with torch.autocast('cuda', dtype=torch.bfloat16):    # no loss scaling needed with bf16\n"
               "    loss = model(x, y)\n"
               "loss.backward()";
    return NULL;                            /* the rule's text, which begins with TF32 */
}

/* By what there is already. CUDA graphs are of CUDA and HIP. */
static const char *launch_fix(const struct fix_facts *f)
{
    if (f->maker == MAKER_OTHER)
        return f->compiled ? "# the code is compiled: give each call more work, with a larger batch or fewer, larger ops"
                           : "model = torch.compile(model)            # fewer, larger ops";
    if (f->some_graphs)
        return "# a part of the step runs as graphs; what keeps the rest out is said with this in the environment:\n"
               "# TORCH_LOGS=graph_breaks,recompiles,cudagraphs";
    if (f->compiled)
        return "model = torch.compile(model, mode='reduce-overhead')   # the compiled code, launched as one graph\n"
               "# what breaks it: TORCH_LOGS=graph_breaks,cudagraphs";
    return NULL;
}

/* What holds the device up is moved; what is compiled or a graph is not advised to become one. */
static const char *host_fix(struct arena *a, const struct fix_facts *f)
{
    if (!f->holder && !f->compiled && !f->some_graphs)
        return NULL;
    const char *move = f->holder ? arena_printf(a, "# %.120s holds the device up: do it in the loader's workers, in a thread beside the step, or less often", f->holder)
                                 : "# the step is compiled or a graph already: move the Python around it out of the loop, or do it less often";
    return arena_printf(a, "%s\nloader = DataLoader(dataset, batch_size=B, num_workers=8, pin_memory=True)      # what is done per batch, in its collate_fn", move);
}

/* The code is for the batch whose gain is promised; a program that accumulates nothing has no number to lower. */
static const char *batch_fix(struct arena *a, const struct fix_facts *f)
{
    if (f->times < 2)
        return NULL;
    const char *loader = arena_printf(a, "loader = DataLoader(dataset, batch_size=%d * B)      # where memory allows; else as large as it does", f->times);
    if (!f->accumulates)
        return loader;
    return arena_printf(a, "%s\n# the same update, of fewer backward passes:\naccumulate = max(1, accumulate // %d)", loader, f->times);
}

/* Nothing is read, so that there is nothing to read later. */
static const char *synchronize_fix(struct arena *a, const struct fix_facts *f)
{
    static const char text[] = "# no torch.cuda.synchronize() in the step: a stream keeps the order of its work, and what reads a result waits by itself\n"
                               "# to time steps without waiting for each:\n"
                               "start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)\n"
                               "start.record()\n"
                               "y = step(x)\n"
                               "end.record()\n"
                               "# between streams, without the host: stream.wait_event(end)\n"
                               "# where times are shown, every so many steps:\n"
                               "end.synchronize()\n"
                               "print(start.elapsed_time(end), 'ms')";
    return fix_replaced(a, text, "torch.cuda.", arena_printf(a, "torch.%s.", f->device ? f->device : "cuda"));
}

/* A tensor of inference_mode cannot be kept for backward; its copy can. */
static const char frozen_fix[] = "# where its weights and inputs do not change from epoch to epoch: compute its outputs once and let the loader bring them\n"
                                 "torch.save(outputs, 'outputs.pt')\n"
                                 "# where they do: in 16 bits, and without what gradients need\n"
                                 "with torch.inference_mode(), torch.autocast('cuda', dtype=torch.bfloat16):\n"
                                 "    z = frozen(x)\n"
                                 "z = z.clone()                           # outside of it: the model that learns may keep this one";

/* On a CPU autocast casts the weights in every call, and made a pass several times slower where it was measured: no 16 bits there. */
static const char *frozen_text(struct arena *a, const struct fix_facts *f)
{
    if (fix_is_for_cpu(f))
        return fix_replaced(a, fix_replaced(a, frozen_fix, "in 16 bits, and without", "without"), ", torch.autocast('cuda', dtype=torch.bfloat16)", "");
    return f->no_bf16 && f->maker == MAKER_NVIDIA ? fix_replaced(a, frozen_fix, "bfloat16", "float16") : frozen_fix;
}

static const char numbers_fix[] = "scale = 0.125                              # a Python number, not torch.tensor(0.125)\n"
                                  "self.register_buffer('scale', torch.tensor(0.125))   # what must be a tensor: once\n"
                                  "x = torch.tensor(rows)                     # all numbers at once, not a tensor of each";

/* As many threads as cores is what PyTorch starts with: where they wait for each other, fewer is what helps. */
static const char *threads_fix(struct arena *a, const struct fix_facts *f)
{
    if (f->threads < 2)
        return NULL;
    const char *text = fix_replaced(a, rule_text_find("cpu-oversubscribed")->fix_pytorch, "max(1, torch.get_num_threads() // 2)", arena_printf(a, "%d", f->threads / 2));
    return fix_replaced(a, text, "fewer than there are: try half of them, and 1",
                        arena_printf(a, "fewer than the %d that run%s", f->threads, f->threads > 3 ? ": try half of them, and 1" : ""));
}

/* What the program has already decides before whether it learns. */
static const char *bound_fix(struct arena *a, const char *rule, const struct fix_facts *f)
{
    if (!strcmp(rule, "launch-bound"))
        return launch_fix(f);
    if (!strcmp(rule, "host-bound"))
        return host_fix(a, f);
    if (!strcmp(rule, "host-sync") && f->synchronizes)
        return synchronize_fix(a, f);
    return NULL;
}

static const char *special(struct arena *a, const char *rule, const struct fix_facts *f)
{
    const char *own = bound_fix(a, rule, f);
    own = own || !f->forward_only ? own : fix_forward(a, rule, f);
    if (own)
        return own;
    if (!strcmp(rule, "no-mixed-precision"))
        return precision_fix(f);
    if (!strcmp(rule, "small-batch"))
        return batch_fix(a, f);
    if (!strcmp(rule, "cpu-oversubscribed"))
        return threads_fix(a, f);
    if (!strcmp(rule, "tiny-host-tensors") && fix_is_for_cpu(f))
        return numbers_fix;
    if (!strcmp(rule, "exposed-comm"))
        return fix_collectives(a, f);
    if (!strcmp(rule, "eval-share") && f->frozen)
        return frozen_text(a, f);
    if (!strcmp(rule, "low-occupancy") && f->compiled)
        return "loader = DataLoader(dataset, batch_size=4 * B)     # more blocks per kernel";
    if (!strcmp(rule, "unfused-optimizer"))
        return fix_optimizer(a, f);
    if (!strcmp(rule, "layout-copies") && f->planes)
        return "model = model.to(memory_format=torch.channels_last)     # once, before training\n"
               "x = x.to(device, memory_format=torch.channels_last, non_blocking=True)";
    return NULL;
}

/* ---- names put in ---- */

const char *fix_replaced(struct arena *a, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at || !strcmp(from, to))
        return text;
    const char *head = arena_printf(a, "%.*s%s", (int)(at - text), text, to);
    return arena_printf(a, "%s%s", head, fix_replaced(a, at + strlen(from), from, to));
}

/* Texts of attention are written for a causal mask; without one is_causal would change what is computed. */
static const char *with_mask(struct arena *a, const char *text, enum scores_mask mask)
{
    static const char causal[] = "# is_causal for a causal mask alone; any other: attn_mask=mask, which rules the flash kernel out\n";
    if (mask == MASK_NONE)
        return fix_replaced(a, fix_replaced(a, text, causal, ""), ", is_causal=True", "");
    if (mask == MASK_BIAS)
        return fix_replaced(a, fix_replaced(a, text, causal, "# bias: what is added to the scores now; it rules the flash kernel out, not the memory-efficient one\n"),
                        "is_causal=True", "attn_mask=bias");
    return text;
}

const char *fix_without_lines(struct arena *a, const char *text, const char *word)
{
    const char *kept = "";
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const int n = (int)strcspn(line, "\n");
        const char *one = arena_printf(a, "%.*s", n, line);
        if (!strstr(one, word))
            kept = arena_printf(a, "%s%s%s", kept, *kept ? "\n" : "", one);
    }
    return kept;
}

/* A comment cannot hold a line's end. */
static const char *with_place(struct arena *a, const char *text, const char *place)
{
    if (!place || !*place || strpbrk(place, "\r\n"))
        return text;
    return arena_printf(a, "# in %.200s\n%s", place, text);
}

/* Batches of a CPU go nowhere, and a worker that takes a core takes it from the ops. */
static const char *without_device(struct arena *a, const char *text)
{
    const char *spare = fix_replaced(a, text, "num_workers=8", "num_workers=spare");
    spare = fix_replaced(a, spare, "persistent_workers=True, pin_memory=True)", "persistent_workers=True)      # spare: cores that no thread of the step needs");
    return fix_replaced(a, fix_replaced(a, spare, ", pin_memory=True", ""), "holds the device up", "holds the step up");
}

const char *fix_text(struct arena *a, const char *rule, const struct fix_facts *f)
{
    const char *own = special(a, rule, f);
    const char *text = own ? own : rule_text_find(rule)->fix_pytorch;
    text = with_mask(a, fix_with_optimizer(a, text, f), f->mask);
    if (f->device && strcmp(f->device, "cuda"))
        text = fix_replaced(a, text, "'cuda'", arena_printf(a, "'%s'", f->device));
    if (fix_is_for_cpu(f))
        text = without_device(a, text);
    return with_place(a, text, f->place);
}
