/* Fixes of programs that only go forward: what serves or evaluates a model. */
#include "analyze/traced/fix_int.h"

#include <string.h>

static const char reads[] = "outputs = []\n"
                            "with torch.inference_mode():\n"
                            "    for x in batches:\n"
                            "        outputs.append(model(x))            # stays on the device\n"
                            "results = torch.cat(outputs).cpu()          # the only synchronization\n"
                            "# where every result decides what is next, as the end of a text does: look every few steps";

static const char half[] = "model = model.to(torch.bfloat16)\n"
                           "with torch.inference_mode():\n"
                           "    y = model(x)                        # of inputs that are no indices: x.to(torch.bfloat16)\n"
                           "# or, where some layers need f32:\n"
                           "with torch.inference_mode(), torch.autocast('cuda', dtype=torch.bfloat16):\n"
                           "    y = model(x)\n"
                           "# or, one line: torch.set_float32_matmul_precision('high'), which is TF32";

static const char graph[] = "model = torch.compile(model, mode='reduce-overhead')   # CUDA graphs: one launch for all\n"
                            "# or, instead, capture the forward pass by hand, where shapes stay the same:\n"
                            "static_x = x.clone()\n"
                            "side = torch.cuda.Stream()\n"
                            "side.wait_stream(torch.cuda.current_stream())\n"
                            "with torch.inference_mode(), torch.cuda.stream(side):      # warm up beside the main stream\n"
                            "    for _ in range(3):\n"
                            "        model(static_x)\n"
                            "torch.cuda.current_stream().wait_stream(side)\n"
                            "graph = torch.cuda.CUDAGraph()\n"
                            "with torch.inference_mode(), torch.cuda.graph(graph):\n"
                            "    static_y = model(static_x)\n"
                            "for x in batches:\n"
                            "    static_x.copy_(x, non_blocking=True)\n"
                            "    graph.replay()\n"
                            "    y = static_y.clone()";

static const char python[] = "model = torch.compile(model)            # fewer, larger ops; Python leaves the step\n"
                             "with torch.inference_mode():            # nothing is recorded for gradients\n"
                             "    y = model(x)";

static const char memory[] = "with torch.inference_mode():            # nothing is kept for gradients\n"
                             "    y = torch.cat([model(part) for part in x.split(B // 2)])        # smaller batches\n"
                             "model = model.to(torch.bfloat16)        # weights of half the size";

static const char small_sums[] = "# what is summed at the same time goes as one buffer\n"
                                 "flat = torch.cat([t.flatten() for t in tensors])\n"
                                 "dist.all_reduce(flat)";

static const struct { const char *rule, *fix; } texts[] = {
    {"host-sync", reads}, {"host-bound", python}, {"launch-bound", graph}, {"memory-limit", memory}, {"small-collectives", small_sums},
};

/* In the types that the device has units for. */
static const char *precision(struct arena *a, const struct fix_facts *f)
{
    const char *text = f->tf32 || f->no_bf16 || f->maker == MAKER_AMD ? fix_without_lines(a, half, "TF32") : half;
    return f->no_bf16 && f->maker != MAKER_AMD ? fix_replaced(a, text, "bfloat16", "float16") : text;
}

static const char *batch(struct arena *a, const struct fix_facts *f)
{
    return arena_printf(a, "loader = DataLoader(dataset, batch_size=%d * B)      # where memory allows; else as large as it does\n"
                        "# a server: let requests wait for each other for some milliseconds, and answer them together", f->times > 1 ? f->times : 2);
}

/* No dropout: it is for training. */
static const char *attention(struct arena *a)
{
    const char *text = fix_without_lines(a, rule_text_find("no-flash-attention")->fix_pytorch, "self.dropout");
    return fix_replaced(a, text, ", dropout_p=p", "");
}

const char *fix_forward(struct arena *a, const char *rule, const struct fix_facts *f)
{
    if (!strcmp(rule, "no-mixed-precision"))
        return precision(a, f);
    if (!strcmp(rule, "small-batch"))
        return batch(a, f);
    if (!strcmp(rule, "no-flash-attention"))
        return attention(a);
    if (!strcmp(rule, "data-stall"))
        return fix_without_lines(a, rule_text_find(rule)->fix_pytorch, "train.bin");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(texts[i].rule, rule))
            return texts[i].fix;
    return NULL;
}
