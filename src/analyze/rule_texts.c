/* What every rule means, in one table: `hone explain` and docs/rules.md show it. fix_pytorch is Python code. */
#include <string.h>

#include "analyze/detect.h"

const struct rule_text rule_texts[] = {
    {.id = "host-sync", .effort = EFFORT_LOW,
     .summary = "The host reads a result of the step while the step runs, or in every step.",
     .recognised = "In a program: host_read ops, which run in every step. In a trace: a device-to-host copy or a "
                   "synchronize call inside the step that the host waits in, such as the ones behind .item(), .cpu(), "
                   "bool(tensor), nonzero() and printing a tensor.",
     .costs = "On a GPU the host can no longer run ahead: the queue of launches drains, and after the read the device "
              "idles until the host has launched again. The wait itself is not the loss (the device works meanwhile); "
              "the gap behind it is. In a step bound by the host the gain is therefore small. On a CPU it costs the "
              "read and its dispatch, a few microseconds.",
     .fix_hone = "The pass async-metrics (on with optimize.passes: all) keeps loss, gradient norm and learning rate on the "
                 "device; they are read when they are shown, at log.every.",
     .fix_pytorch = "total = torch.zeros((), device=device)\n"
                    "for step, batch in enumerate(loader):\n"
                    "    loss = train_step(batch)\n"
                    "    total += loss.detach()              # stays on the device\n"
                    "    if (step + 1) % log_every == 0:\n"
                    "        print(total.item() / log_every)  # the only synchronization\n"
                    "        total.zero_()"},
    {.id = "constant-rebuilt", .effort = EFFORT_LOW,
     .summary = "Values that never change, such as causal masks and rotary tables, are built again in every step or "
                "layer.",
     .recognised = "In a program: ops without inputs; equal kind and attributes count as the same constant. In a "
                   "trace: the same short chain of creation ops (arange, full, ones, triu, tril, cos, sin, outer) "
                   "with equal shapes in every step, often once per layer.",
     .costs = "T x T writes per layer for a mask, T x D/2 sines and cosines for a table, and a dispatch or launch for "
              "each; on a GPU also a copy when the constant is made on the host. It scales with layers although one "
              "copy serves all.",
     .fix_hone = "The pass hoist-constants (on with optimize.passes: all) makes masks and tables once and shares equal "
                 "ones; flash-attention needs no mask at all.",
     .fix_pytorch = "class Attention(nn.Module):\n"
                    "    def __init__(self, max_len):\n"
                    "        super().__init__()\n"
                    "        mask = torch.ones(max_len, max_len, dtype=torch.bool).tril()\n"
                    "        self.register_buffer('mask', mask, persistent=False)\n"
                    "    def forward(self, x):\n"
                    "        mask = self.mask[:x.size(1), :x.size(1)]   # a view\n"
                    "# or no mask at all: F.scaled_dot_product_attention(q, k, v, is_causal=True)"},
    {.id = "unfused-optimizer", .effort = EFFORT_LOW,
     .summary = "The optimizer runs one or several ops per parameter tensor instead of one sweep over all.",
     .recognised = "In a program: at least two ops that update parameters in place, counted with the reductions of "
                   "single gradients to scalars. In a trace: inside the optimizer's range, kernels in proportion to "
                   "tensors x element-wise ops rather than a few multi-tensor kernels.",
     .costs = "AdamW moves 28 bytes per f32 parameter whatever its form, so one sweep takes those bytes over the "
              "bandwidth. Per-tensor ops add a dispatch each, and biases and norms are too small to reach that "
              "bandwidth or to occupy all threads. The expected gain keeps the rate measured on the largest tensor; "
              "the optimistic end is the bandwidth itself.",
     .fix_hone = "The pass fused-optimizer (on with optimize.passes: all): one op for the norm of all gradients, one "
                 "sweep of AdamW over all tensors. train.accumulate above 1 runs it less often per sample.",
     .fix_pytorch = "optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)   # or foreach=True"},
    {.id = "no-mixed-precision", .effort = EFFORT_LOW, .trade = true,
     .summary = "Matrix products run in f32 on a device whose bf16 or fp16 units are several times faster.",
     .recognised = "In a trace: the time of matrix products is in f32 or TF32 kernels (by kernel name and input "
                   "types) on a device with tensor cores. In a program on a GPU: products of f32, where its bf16 peak is higher; the "
                   "expected gain is what the cost model predicts for the pass. On a CPU: the pass alone, where it would win.",
     .costs = "f32 products use a fraction of the arithmetic peak and twice the bytes. The gain reaches only the time "
              "in products and in memory-bound ops; casts are added, and in a step bound by the host autocast can "
              "lose.",
     .fix_hone = "optimize.precision: bf16 gives activations and operands of products 16 bits; sums, master weights, their gradients "
                 "and optimizer state stay f32. It wins on GPUs, and on CPUs with AMX or BFMMLA (hone doctor says so).",
     .fix_pytorch = "torch.set_float32_matmul_precision('high')            # TF32, one line\n"
                    "with torch.autocast('cuda', dtype=torch.bfloat16):    # no loss scaling needed with bf16\n"
                    "    loss = model(x, y)\n"
                    "loss.backward()"},
    {.id = "no-flash-attention", .effort = EFFORT_MEDIUM,
     .summary = "Attention writes the scores of all pairs of tokens to memory and reads them back op by op.",
     .recognised = "In a program: the output of attn_scores is read by mask, softmax or dropout before a mix; their "
                   "gradients count too. In a trace: two batched products with a softmax over (B, H, T, T) between "
                   "them.",
     .costs = "B × H × T × T numbers are written and read by every op of the chain, forward and backward, and kept "
              "between the two, so that time and memory grow with the square of T. Under a causal mask half of the "
              "products are thrown away. What remains in blocks: the products, once more for the scores in backward, "
              "and softmax, over the blocks that the mask leaves.",
     .fix_hone = "The pass flash-attention (on with optimize.passes: all): one op with a running maximum and sum per row, "
                 "blocks of keys that stay in cache, blocks above the diagonal skipped, and only the logarithm of the "
                 "row sum kept for backward.",
     .fix_pytorch = "p = self.dropout if self.training else 0.0\n"
                    "y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)   # (B, H, T, D)\n"
                    "# is_causal for a causal mask alone; any other: attn_mask=mask, which rules the flash kernel out\n"
                    "# grouped heads: enable_gqa=True"},
    {.id = "pageable-copies", .effort = EFFORT_LOW,
     .summary = "Batches are copied to the device from ordinary memory, which the driver copies twice and the host "
                "waits for.",
     .recognised = "In a trace: host-to-device copies marked Pageable, or that block the calling thread, inside the "
                   "step.",
     .costs = "The driver copies pageable memory through a pinned buffer of its own, at a fraction of the bus's "
              "speed, and the call returns only when that is done: the copy overlaps with nothing.",
     .fix_hone = "Does not occur: on the CPU a batch is copied once, from the loader into the inputs of the "
                 "program; on a GPU it goes through pinned memory, beside the step before. The report lists it as upload.",
     .fix_pytorch = "loader = DataLoader(dataset, batch_size=B, num_workers=4, pin_memory=True)\n"
                    "x = x.to(device, non_blocking=True)"},
    {.id = "tiny-host-tensors", .effort = EFFORT_LOW,
     .summary = "Small tensors are created on the host and copied to the device one by one inside the step.",
     .recognised = "In a trace: at least four host-to-device copies of up to 512 bytes per step from ordinary memory, "
                   "such as torch.tensor(x).to(device); the loop around them counts too.",
     .costs = "Each copy costs a call and, from pageable memory, a wait, about 10 to 30 microseconds for bytes that "
              "take none.",
     .fix_hone = "Does not occur: learning rate and counters are values of the program and are computed by its ops.",
     .fix_pytorch = "pos = torch.arange(T, device=device)       # made on the device, not torch.arange(T).to(device)\n"
                    "scale = 0.125                              # a Python number, not torch.tensor(0.125).to(device)\n"
                    "self.register_buffer('scale', torch.tensor(0.125))   # what must be a tensor: once"},
    {.id = "data-stall", .effort = EFFORT_LOW,
     .summary = "The step waits for its batch.",
     .recognised = "The time between steps in which the training thread waits for the loader (in a trace: the "
                   "DataLoader's __next__) is above 0.5 % of the step. In a trace also where epochs start the loader's workers anew.",
     .costs = "Nothing else runs meanwhile, so all of it can be won where a core is free for the loader. On a CPU "
              "whose cores all train, loading takes its time from the step wherever it runs; then half is expected.",
     .fix_hone = "data.workers (0 loads inline), data.prefetch (batches ahead), threads one below the cores, so that "
                 "the loader has one; data.source: bin reads token shards, which need no tokenizing.",
     .fix_pytorch = "loader = DataLoader(dataset, batch_size=B, num_workers=8, prefetch_factor=4,\n"
                    "                    persistent_workers=True, pin_memory=True)\n"
                    "# tokenize once into a memory-mapped array: np.memmap('train.bin', dtype=np.uint16)"},
    {.id = "eval-share", .effort = EFFORT_LOW, .trade = true,
     .summary = "Evaluation during training takes more than 2 % of the run.",
     .recognised = "Time of the evaluations of a run over its training steps, relative to step plus evaluation: those that "
                   "come every eval.every steps, and those at the end of the run and of each stage, which stay. In "
                   "a trace: forward passes without a backward beside the training steps, under torch.no_grad() or not. A network that does not learn and runs within them, such "
                   "as a frozen encoder or a reference model, is told without a gain; so is a pass of the same layers with every step, of which no number is read.",
     .costs = "Its time is lost to training. The expected gain brings it to 2 %, or as near as a run can that evaluates at its end; the "
              "pessimistic end evaluates half as often, the optimistic one only at the end.",
     .fix_hone = "eval.every larger, eval.batches smaller (the noise of the loss grows with its inverse square root), "
                 "eval.batch_size larger where small batches do not fill a GPU (nothing is kept for backward); on CPUs it won nothing.",
     .fix_pytorch = "if step % eval_every == 0:\n"
                    "    model.eval()\n"
                    "    with torch.inference_mode():           # not only model.eval(): no graph is kept\n"
                    "        losses = [model(x, y) for x, y in islice(val_loader, eval_batches)]\n"
                    "    val = torch.stack(losses).mean().item()    # one synchronization\n"
                    "    model.train()"},
    {.id = "small-batch", .effort = EFFORT_LOW, .trade = true,
     .summary = "A large part of the step does not grow with the batch, so that a larger batch costs less per sample.",
     .recognised = "Each op's time is split by what it touches: ops that see nothing of the batch (optimizer, "
                   "constants) are fixed, ops bound by memory are fixed as the weights are of their bytes, ops bound "
                   "by arithmetic grow; dispatch and host work are fixed. Listed from 5 % fixed, if a doubled batch "
                   "fits in memory. In a trace: most kernels of products, attention and norms are shorter than a "
                   "launch, and the device is idle.",
     .costs = "With a fixed part F of step S, twice the batch takes 2S - F: a gain per sample of 2S / (2S - F). The "
              "optimistic end also counts half of the imbalance and of the time beyond the roofline as fixed.",
     .fix_hone = "train.batch_size. It changes training: updates get fewer per epoch, and train.lr may have to rise. "
                 "Where train.accumulate is above 1, lower it by the same factor and training stays the same. `hone bench --batches auto` "
                 "finds the size from which more wins nothing; `hone tune --larger-batch sqrt` takes it, with train.lr by that rule.",
     .fix_pytorch = "loader = DataLoader(dataset, batch_size=2 * B)\n"
                    "# the same update with accumulation halved:\n"
                    "accumulate //= 2"},
    {.id = "launch-bound", .effort = EFFORT_MEDIUM,
     .summary = "The device finishes kernels faster than the host launches them.",
     .recognised = "In a trace: short kernels with gaps between them, a launch queue that is empty or one deep, and "
                   "the time of launch calls near the length of the step. In a program on a GPU: it is idle between kernels for at "
                   "least 10 % of the step.",
     .costs = "A launch costs the host some microseconds whatever the kernel does; kernels shorter than that leave "
              "the device idle for the difference.",
     .fix_hone = "The pass capture (optimize.capture) records the step into a graph that one call of the host starts; without it the host "
                 "starts every kernel. Passes that fuse leave fewer of them. Does not occur on the CPU, which launches nothing; "
                 "what starting an op costs there is host-bound.",
     .fix_pytorch = "model = torch.compile(model, mode='reduce-overhead')   # CUDA graphs: one launch for all\n"
                    "# or, instead, capture the whole step by hand, where shapes stay the same:\n"
                    "optimizer = torch.optim.AdamW(model.parameters(), lr=lr, capturable=True)\n"
                    "static_x, static_y = x.clone(), y.clone()\n"
                    "def step():\n"
                    "    optimizer.zero_grad(set_to_none=True)\n"
                    "    loss = loss_fn(model(static_x), static_y)\n"
                    "    loss.backward()\n"
                    "    optimizer.step()\n"
                    "    return loss\n"
                    "side = torch.cuda.Stream()\n"
                    "side.wait_stream(torch.cuda.current_stream())\n"
                    "with torch.cuda.stream(side):                  # warm up beside the main stream\n"
                    "    for _ in range(3):\n"
                    "        step()\n"
                    "torch.cuda.current_stream().wait_stream(side)\n"
                    "graph = torch.cuda.CUDAGraph()\n"
                    "with torch.cuda.graph(graph):\n"
                    "    static_loss = step()\n"
                    "for x, y in loader:\n"
                    "    static_x.copy_(x, non_blocking=True)\n"
                    "    static_y.copy_(y, non_blocking=True)\n"
                    "    graph.replay()"},
    {.id = "host-bound", .effort = EFFORT_MEDIUM,
     .summary = "What the host does between ops takes a noticeable share of the step.",
     .recognised = "In a program: dispatch plus host work is at least 5 % of the step; on a GPU: upload plus host work. In a trace, after the "
                   "profiler's own cost is taken out: the device idles because nothing has been launched, while the "
                   "host runs Python and framework code.",
     .costs = "The share is lost on every op and does not shrink with a faster device. The expected gain is half of "
              "it (half as many ops), the optimistic one all of it (the step is replayed without dispatch).",
     .fix_hone = "The pass fewer-meetings (optimize.fewer-meetings) lets threads meet only where an op needs what another one wrote. "
                 "train.batch_size gives each op more work; threads: 1 removes meetings altogether, which is faster for very "
                 "small models. Fewer ops come from the changes under unfused-projections, unfused-optimizer and "
                 "no-flash-attention.",
     .fix_pytorch = "model = torch.compile(model)            # fewer, larger ops; Python leaves the step\n"
                    "optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)\n"
                    "optimizer.zero_grad(set_to_none=True)"},
    {.id = "per-head-attention", .effort = EFFORT_LOW,
     .summary = "Attention loops over heads (or samples) in Python instead of treating them as a dimension.",
     .recognised = "In a trace: the same chain of small products and softmax repeated once per head within a layer, "
                   "with shapes that lack a head dimension.",
     .costs = "H times the launches, each with 1/H of the work, then a concatenation; small products use a fraction "
              "of the device.",
     .fix_hone = "Does not occur: attention ops take all heads and samples at once.",
     .fix_pytorch = "q, k, v = (t.view(B, T, H, D).transpose(1, 2) for t in (q, k, v))    # (B, H, T, D)\n"
                    "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)\n"
                    "# is_causal for a causal mask alone; any other: attn_mask=mask, which rules the flash kernel out\n"
                    "y = y.transpose(1, 2).reshape(B, T, H * D)"},
    {.id = "unfused-projections", .effort = EFFORT_MEDIUM,
     .summary = "Several products read the same input with different weights: Q, K and V, or gate and up.",
     .recognised = "In a program: at least two forward products of one value with parameters; their weight gradients, "
                   "input gradients and the adds that sum the latter count too. In a trace: consecutive linear ops on "
                   "one input.",
     .costs = "The input is read once per product, narrow products (K and V with few heads) run below the rate of "
              "wide ones, each pays its dispatch, and backward adds up as many input gradients, a pass over memory "
              "each. Arithmetic stays the same. The expected gain runs all at the rate of the group's widest product, "
              "without the adds.",
     .fix_hone = "The passes fuse-qkv and fuse-gate-up (on with optimize.passes: all): all products of one input in one "
                 "op, their gradients to it in one sum. The weights stay separate, so checkpoints keep their names.",
     .fix_pytorch = "self.qkv = nn.Linear(dim, (heads + 2 * kv_heads) * head_dim, bias=False)\n"
                    "q, k, v = self.qkv(x).split([heads * head_dim] + 2 * [kv_heads * head_dim], dim=-1)\n"
                    "self.gate_up = nn.Linear(dim, 2 * ffn, bias=False)\n"
                    "gate, up = self.gate_up(x).chunk(2, dim=-1)\n"
                    "x = self.down(F.silu(gate) * up)"},
    {.id = "zero-grad-fills", .effort = EFFORT_LOW,
     .summary = "Gradient buffers are filled with zeros in every step and then added to.",
     .recognised = "In a program: fill and zero ops on more than one element. In a trace: fills inside Optimizer.zero_grad, "
                   "and the additions to gradients that they make necessary.",
     .costs = "One write of every gradient, one read more when the first gradient is added instead of stored, and a "
              "launch or dispatch per tensor.",
     .fix_hone = "optimize.no-zero-fill: on. Occurs with train.accumulate above 1 only: accumulators are zeroed after "
                 "each update. With the pass the first micro-batch stores, the others add.",
     .fix_pytorch = "optimizer.zero_grad(set_to_none=True)    # the default since 2.0; do not pass False, do not loop "
                    "p.grad.zero_()"},
    {.id = "allocator-churn", .effort = EFFORT_MEDIUM,
     .summary = "Memory is taken from and given back to the device driver inside the step.",
     .recognised = "In a trace: calls of the driver's malloc and free (cudaMalloc, hipFree, ...) in every step.",
     .costs = "cudaFree waits for the whole device; the calls take from tens of microseconds to milliseconds. Causes: "
              "empty_cache() in the loop, shapes that change from step to step, memory near its limit.",
     .fix_hone = "Does not occur: memory is planned and allocated before the first step.",
     .fix_pytorch = "# remove torch.cuda.empty_cache() from the loop; pad batches to a few fixed lengths\n"
                    "# before the first CUDA call:\n"
                    "os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'"},
    {.id = "device-to-host-copy", .effort = EFFORT_LOW,
     .summary = "Large results are copied to the host inside the step.",
     .recognised = "In a trace: device-to-host copies of more than a scalar in every step: logits for a metric, "
                   "gradients for a norm, activations for logging. In a program on a GPU: host_read ops.",
     .costs = "Bytes over the bus's bandwidth, and a wait of the host like host-sync, which drains the launch queue.",
     .fix_hone = "Only scalars leave a program (host_read), and with the pass async-metrics (on with optimize.passes: all) none in a step.",
     .fix_pytorch = "correct += (logits.argmax(-1) == y).sum()       # reduce on the device, read at log intervals\n"
                    "host = torch.empty(out.shape, pin_memory=True)  # what must be copied: asynchronously\n"
                    "host.copy_(out, non_blocking=True)"},
    {.id = "misaligned-dims", .effort = EFFORT_LOW,
     .summary = "Dimensions of matrix products are no multiple of what the device's units work on.",
     .recognised = "In a trace with shapes: a width of forward products not divisible by 8 (bf16, fp16) or 16 (fp8), "
                   "most often the vocabulary; all products with that width count, at the rate of the others. In a program on a GPU: "
                   "rows of operands of 16-bit or TF32 products that are no multiple of 16 bytes.",
     .costs = "Tensor cores need aligned rows: else the product runs in a slower variant, or partly empty tiles are "
              "computed.",
     .fix_hone = "model.vocab, model.dim and model.ffn are free to choose: multiples of 64 suit every device. On the "
                 "CPU the last partial tile costs little, and no finding is raised.",
     .fix_pytorch = "vocab = 64 * math.ceil(vocab / 64)          # 50257 -> 50304; the extra logits are never targets\n"
                    "self.head = nn.Linear(dim, vocab, bias=False)"},
    {.id = "recompute", .effort = EFFORT_LOW,
     .summary = "The same work is done twice on the same inputs.",
     .recognised = "In a program: an op whose kind, attributes and inputs (unchanged since) are those of an earlier "
                   "one; constants have a rule of their own. In a trace: forward ops inside the backward range, as "
                   "checkpointing leaves them.",
     .costs = "The repeated time is lost, unless it buys memory that is needed: full checkpointing adds about a third "
              "to the step.",
     .fix_hone = "Programs built by hone keep what backward needs and raise nothing here. Where it is raised, use the "
                 "first result twice.",
     .fix_pytorch = "# checkpoint only where memory is short: every second block, or attention alone\n"
                    "x = checkpoint(block, x, use_reentrant=False) if i % 2 == 0 else block(x)\n"
                    "h = self.norm(x); a = self.attn(h); m = self.mlp(h)     # h once, not self.norm(x) in both calls"},
    {.id = "exposed-comm", .effort = EFFORT_MEDIUM,
     .summary = "Communication between ranks runs while the device computes nothing.",
     .recognised = "In a trace: time of communication kernels that no computation kernel of the same rank overlaps. In a program on several "
                   "ranks: what even the rank that comes last to the sums of a step waits for them, from 2 % of the step.",
     .costs = "Exposed time adds to the step in full. Gradients can be reduced while backward goes on; what cannot be "
              "hidden is the last bucket.",
     .fix_hone = "dist.bucket_mb: smaller buckets start earlier, larger ones are fewer; `hone tune` under ranks tries others. train.accumulate and "
                 "train.batch_size up: fewer sums per sample. `hone simulate` says what a faster link would win.",
     .fix_pytorch = "# sums of gradients: in DDP's buckets, while backward goes on, and once per update\n"
                    "model = DDP(model, gradient_as_bucket_view=True, static_graph=True)\n"
                    "with model.no_sync() if not last_micro_batch else nullcontext():\n"
                    "    loss.backward()\n"
                    "# FSDP: bring the weights of the next layers early (forward_prefetch, set_modules_to_forward_prefetch)\n"
                    "# all-to-all: async_op=True, and what does not need its result before wait()"},
    {.id = "straggler", .effort = EFFORT_HIGH,
     .summary = "One rank is slower than the others, and all wait for it.",
     .recognised = "In traces of several ranks: computation time per step of one rank well above the median, and "
                   "collectives that are short on it and long on the others. In a program on several ranks: the others wait for one rank "
                   "for at least 5 % of the step, on the mean of the steps.",
     .costs = "Every synchronous step takes as long as its slowest rank: the others lose the difference.",
     .fix_hone = "The finding says what that rank does longer: wait for its batches (data.workers, its disk), or compute (other load on its "
                 "machine, slower cores, fewer threads). Uneven threads within a rank are cpu-oversubscribed.",
     .fix_pytorch = "# equal work: sort by length and deal batches of equal token counts to the ranks\n"
                    "sampler = DistributedSampler(dataset, drop_last=True)\n"
                    "# equal machines: nvidia-smi -q -d CLOCK,PERFORMANCE on each node for throttling"},
    {.id = "memory-limit", .effort = EFFORT_MEDIUM,
     .summary = "The step needs most of the memory there is.",
     .recognised = "The larger of planned peak and resident memory is at least 80 % of what the process may use; in a "
                   "trace: reserved memory of at least 92 % of the device's.",
     .costs = "No time yet (expected gain 1), but there is no room for a larger batch or sequence, and a little more "
              "means swapping or the end of the process.",
     .fix_hone = "optimize.recompute: on computes activations again in the backward as far as optimize.memory asks for; "
                 "train.batch_size down and train.accumulate up by the same factor keep the update; "
                 "optimize.flash-attention: on stores no scores; eval.batch_size if evaluation is the peak.",
     .fix_pytorch = "loss = model(x, y) / accumulate; loss.backward()        # smaller micro-batches\n"
                    "x = checkpoint(block, x, use_reentrant=False)            # memory for time\n"
                    "y = F.scaled_dot_product_attention(q, k, v)              # no stored scores; is_causal=True for a causal mask"},
    {.id = "low-occupancy", .effort = EFFORT_HIGH,
     .summary = "Kernels use a small part of the device: few blocks, or few warps per processor.",
     .recognised = "In a trace: kernels other than products, attention and collectives with an estimated occupancy "
                   "below 15 %, weighted by their time. In a program on a GPU, where CUPTI tells of its kernels: ops that are no "
                   "products, below 15 % and below half of their roofline, together at least 5 % of the step. High occupancy is no aim in itself: good "
                   "products run at 25 %.",
     .costs = "Idle multiprocessors do nothing for the length of the kernel; too few warps leave memory latency "
              "uncovered.",
     .fix_hone = "On the CPU an op is divided among all threads; what is left is the kernel's own rate. The pass autotune "
                 "(optimize.autotune) times the kernels of products on this machine and takes the fastest per shape.",
     .fix_pytorch = "loader = DataLoader(dataset, batch_size=4 * B)     # more blocks per kernel\n"
                    "model = torch.compile(model)                        # fused kernels over larger grids"},
    {.id = "no-clipping", .effort = EFFORT_LOW,
     .summary = "Nothing limits the norm of the gradient.",
     .recognised = "In a program: parameters are updated, and no clip op has a limit (train.clip is 0). In a trace: "
                   "an optimizer step without a norm reduction over the gradients before it.",
     .costs = "No time (expected gain 1). One batch with a huge gradient can throw the weights away from where many "
              "steps brought them, and Adam's moments remember it; large learning rates become unusable.",
     .fix_hone = "train.clip: 1.0. The norm is computed in any case, for the metrics and the check of finite "
                 "gradients, so that it costs nothing.",
     .fix_pytorch = "loss.backward()\n"
                    "scaler.unscale_(optimizer)      # only with a GradScaler\n"
                    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                    "optimizer.step()"},
    {.id = "cpu-oversubscribed", .effort = EFFORT_LOW,
     .summary = "More threads than cores, or threads that wait long for each other.",
     .recognised = "More compute threads than usable cores (affinity and container limits count), or threads lose "
                   "more than 10 % of the step to each other: waiting behind ops for those that are slower, and what "
                   "starting ops takes above 20 microseconds each, which a thread without a core explains and "
                   "dispatch does not. In a trace of a CPU whose buffers tell of several threads: small additions, products by a number and copies take "
                   "60 microseconds or more, longer than one thread would need.",
     .costs = "Threads meet where an op needs what another one wrote: a thread without a core makes all wait until the scheduler runs it, "
              "milliseconds for microseconds of work. Expected to go: all of it where threads are too many, half of "
              "it otherwise.",
     .fix_hone = "threads: 0 takes the usable cores; fewer where other work needs some. data.workers run beside them.",
     .fix_pytorch = "torch.set_num_threads(max(1, torch.get_num_threads() // 2))     # fewer than there are: try half of them, and 1\n"
                    "DataLoader(dataset, num_workers=2, worker_init_fn=lambda _: torch.set_num_threads(1))\n"
                    "# several processes per machine: OMP_NUM_THREADS = cores // processes"},
    {.id = "threads-unused", .effort = EFFORT_LOW,
     .summary = "Ops run on one thread while the machine's other cores are idle.",
     .recognised = "In a trace of a CPU: buffers that an op makes with a row for each thread (gradients of layer norm's weights, attention, batch "
                   "norm) have one row, a large cat copies without dividing its result, or elementwise ops take four times as long for four times the "
                   "elements, where threads that meet for it would hardly take longer. How many cores there are is not in a trace. In a "
                   "program: not looked for; hone takes all usable cores.",
     .costs = "Products, attention and elementwise ops divide well: eight threads took 3.8 to 6.2 times less for them. Dispatch, Python and small "
              "ops stay as they are. The expected gain is that of eight threads with a core each; its low end is that of one core.",
     .fix_hone = "threads: 0 takes the usable cores.",
     .fix_pytorch = "import os\n"
                    "torch.set_num_threads(len(os.sched_getaffinity(0)))   # before the first op\n"
                    "# look for what sets it to 1: OMP_NUM_THREADS=1 (torchrun sets it), MKL_NUM_THREADS, a worker_init_fn\n"
                    "# several processes per machine: OMP_NUM_THREADS = cores // processes"},
    {.id = "small-collectives", .effort = EFFORT_LOW,
     .summary = "Gradients are exchanged in many small collectives instead of a few large ones.",
     .recognised = "In a trace: 16 or more collectives of one kind per step, by far most of them below a mebibyte, which no computation hides.",
     .costs = "Every collective costs its latency, on all ranks: tens of microseconds on NVLink, hundreds over gloo and a network, whatever its size. "
              "The expected gain puts them into buckets of 25 MB: what stays is the latency of those and the time that the bytes take.",
     .fix_hone = "Does not occur: gradients travel in a few buckets. The first has up to 1 MB, each other one a twelfth of all gradients, but 1 to 25 MB "
                 "(dist.bucket_mb; docs/ranks.md).",
     .fix_pytorch = "model = DDP(model, gradient_as_bucket_view=True)     # in buckets, instead of all_reduce per parameter\n"
                    "# by hand: one buffer for all gradients\n"
                    "flat = torch._utils._flatten_dense_tensors([p.grad for p in params])\n"
                    "dist.all_reduce(flat)\n"
                    "for p, g in zip(params, torch._utils._unflatten_dense_tensors(flat, [p.grad for p in params])):\n"
                    "    p.grad.copy_(g / dist.get_world_size())"},
    {.id = "layout-copies", .effort = EFFORT_MEDIUM,
     .summary = "Ops that only move data: transposes, contiguous copies, concatenations, casts back and forth.",
     .recognised = "In a program: ops without arithmetic whose output holds the elements of their input, and "
                   "arithmetic that changes nothing (a sum over no dimension, dropout with probability 0). In a "
                   "trace: contiguous, clone and reshape ops of the forward pass that launch a copy, and kernels by which a library "
                   "turns images round for its convolutions (nchwToNhwc, nhwcToNchw).",
     .costs = "A read and a write of the tensor at memory bandwidth, a dispatch, and often a second copy in backward. "
              "The pessimistic end wins half of their own time, as the consumer may run slower on the other layout.",
     .fix_hone = "Programs built by hone have none: heads are addressed inside (B, T, H x D) and transposes are "
                 "attributes of the product. Where it is raised, let the neighbouring op read or write the layout.",
     .fix_pytorch = "q = q.view(B, T, H, D).transpose(1, 2)      # a view; attention takes strides: no .contiguous()\n"
                    "y = y.transpose(1, 2).reshape(B, T, H * D)  # one copy at most\n"
                    "model = model.to(memory_format=torch.channels_last)   # convolutions: once, not per layer"},
    {.id = "unfused-loss", .effort = EFFORT_MEDIUM,
     .summary = "The logits of all tokens are written to memory and read back by log-softmax, loss and their gradients.",
     .recognised = "In a program: the pass fuse-loss is off and finds the product, log-softmax and loss that it puts in one op; the "
                   "expected gain is what the cost model predicts for it. In a trace: not looked for.",
     .costs = "Logits are the largest activation of a small model with a large vocabulary: (tokens x vocabulary) numbers, written "
              "once and read four times, and as much memory. In blocks of rows they stay in cache, from the product to the gradient.",
     .fix_hone = "optimize.fuse-loss: on computes logits, loss and both gradients block by block; training and evaluation never hold all "
                 "logits.",
     .fix_pytorch = "# pip install liger-kernel: logits and loss in blocks, gradients on the way\n"
                    "from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss\n"
                    "loss = LigerFusedLinearCrossEntropyLoss()(self.head.weight, x.view(-1, dim), y.view(-1))"},
    {.id = "unfused-norms", .effort = EFFORT_LOW,
     .summary = "The residual sum and the norm behind it each go through memory, forward and backward.",
     .recognised = "In a program: the pass fuse-residual-norm is off and finds sums whose result a norm reads; the expected gain is what "
                   "the cost model predicts for it. In a trace: not looked for.",
     .costs = "Two sweeps over the activations where one would do, and two dispatches, in every layer and again in backward.",
     .fix_hone = "optimize.fuse-residual-norm: on adds and normalises in one sweep; backward adds the two gradients in the norm's.",
     .fix_pytorch = "model = torch.compile(model)            # fuses the sum into the norm"},
    {.id = "unfused-activation", .effort = EFFORT_LOW,
     .summary = "Bias and GELU go over the product's result after it has left the cache.",
     .recognised = "In a program: the pass fuse-bias-gelu is off and finds a product with a bias whose only reader is GELU; the "
                   "expected gain is what the cost model predicts for it. In a trace: not looked for.",
     .costs = "The widest activation of a block is written, read and written again, and read once more for the slope in backward.",
     .fix_hone = "optimize.fuse-bias-gelu: on applies both to each block of the product while it is in cache, and keeps the slope.",
     .fix_pytorch = "model = torch.compile(model)            # an epilogue of the product\n"
                    "F.gelu(self.up(x), approximate='tanh')  # the tanh form is cheaper"},
    {.id = "untimed-kernels", .effort = EFFORT_LOW,
     .summary = "The kernel of each product is chosen by a rule of thumb, not by what is fastest on this machine.",
     .recognised = "In a program: the pass autotune is off, and timing the products of this step on this machine finds faster "
                   "kernels; the expected gain is the difference of the times. In a trace: not looked for.",
     .costs = "Which of two kernels is faster depends on the shape, the library and the CPU; a rule is wrong for some shapes by tens of "
              "percent.",
     .fix_hone = "optimize.autotune: on times the kernels of every shape once and remembers the choice for this machine.",
     .fix_pytorch = "torch.backends.cudnn.benchmark = True\n"
                    "model = torch.compile(model, mode='max-autotune')"},
    {.id = "ungrouped-nodes", .effort = EFFORT_LOW,
     .summary = "Blocks that wait for nothing of each other run one after the other, op by op.",
     .recognised = "In a program: the pass group-levels is off and finds the same op in several small nodes of one level of a tree; the expected gain is "
                   "what the cost model predicts for fewer calls. In a trace: not looked for.",
     .costs = "A call per node where one per level would do: threads meet, or a kernel starts and ends, for each, and small ones leave a part of the "
              "device idle.",
     .fix_hone = "optimize.group-levels: on puts the same op of all nodes of a level into one call.",
     .fix_pytorch = "x = torch.stack([x] * 3)                # (nodes, B, T, D), weights stacked likewise\n"
                    "y = torch.baddbmm(bias, x.flatten(1, 2), weight.mT)     # one batched product a level"},
    {.id = "padding-waste", .effort = EFFORT_LOW,
     .summary = "More than a tenth of what a step works on are tokens of no sample: padding behind short ones.",
     .recognised = "In a run: lengths of some thousands of training samples against the rows that batches of them have, with data.bucket and "
                   "data.group as they are. In a trace: not looked for.",
     .costs = "Padding costs what any token costs, but for the loss. The expected gain is that of buckets of 16 tokens and groups of 8 batches, or of shared rows where that is more; "
              "the pessimistic end is half of it, the optimistic one no padding at all.",
     .fix_hone = "data.pack: on puts several samples into a row, whose attention does not cross from one to the other. data.bucket: a batch is "
                 "as long as its longest sample, up to the next multiple; data.group sorts the samples of so many batches "
                 "by length, so that a batch has samples of like length. Every length has a program, all in one memory.",
     .fix_pytorch = "torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)   # to the longest of the batch, not of all\n"
                    "# sort windows of some batches by length, cut them into batches, shuffle the batches: a sampler with\n"
                    "# sorted(window, key=len); or pack samples and use flash_attn_varlen_func(q, k, v, cu_seqlens, ...)"},
    {.id = "anomaly-mode", .effort = EFFORT_LOW,
     .summary = "The anomaly detection of PyTorch's autograd is on in every step.",
     .recognised = "In a trace: most nodes of the backward pass look through the gradients that they computed (isnan, _is_any_true, item). Where the mode is on "
                   "with check_nan=False, nothing but long calls tells of it, and nothing is said.",
     .costs = "Each gradient is read once more and a number of it is read by the host, which on a GPU is a synchronization per gradient; each op that will have a "
              "gradient formats the Python stack that called it, tens to hundreds of microseconds. Measured, steps took 1.4 to 3 times as long. The "
              "expected gain takes both away: the checks, and what ops take before they call what is inside them beyond what ops of the backward pass do.",
     .fix_hone = "Does not occur: whether gradients are finite is told by their norm, which is computed in any case.",
     .fix_pytorch = "torch.autograd.set_detect_anomaly(False)          # or remove what sets it to True; Trainer(detect_anomaly=False)\n"
                    "# on for the step that went wrong alone:\n"
                    "loss = loss_fn(model(x), y)\n"
                    "if not torch.isfinite(loss.detach()).item():      # look at a loss that is read anyway, every so many steps\n"
                    "    with torch.autograd.detect_anomaly():\n"
                    "        loss_fn(model(x), y).backward()"},
    {.id = "unused-gradients", .effort = EFFORT_LOW,
     .summary = "Gradients are computed for parameters that no optimizer updates, such as those of a frozen backbone.",
     .recognised = "In a trace with shapes: gradients reach more parameters than the optimizers' steps go over, and backward goes on behind the last of those. "
                   "Parameters are told by their shapes; where several have one shape, the order of the backward pass decides, and the low end of the interval is "
                   "no gain unless gradients that are never dropped (they are added to) tell the same. Not looked for on several ranks, of which each may update a share.",
     .costs = "An optimizer that was given the head alone leaves the rest as it is, but backward still goes through all of it: about two thirds of a step, with all "
              "activations kept for it. The expected gain takes away the backward nodes behind the last gradient that is used; forward without "
              "gradients is a little faster, too, which is not counted.",
     .fix_hone = "Does not occur: what has a gradient in a program is updated by its optimizer.",
     .fix_pytorch = "backbone.requires_grad_(False)              # once, before training; its batch norms and dropout: backbone.eval()\n"
                    "optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, fused=True)\n"
                    "with torch.no_grad():                       # nothing of it is kept for backward\n"
                    "    z = backbone(x)\n"
                    "loss = loss_fn(head(z), y)"},
    {.id = "sample-loop", .effort = EFFORT_LOW,
     .summary = "The model runs once per sample, in a loop over a batch that it could take at once.",
     .recognised = "In a trace of a CPU with shapes: four turns or more of the same ops on the same shapes, none of them backward, that take one sample out of a tensor of "
                   "so many (x[i:i+1], x[i].unsqueeze(0), for x in xs) and whose products, convolutions or lookups have one sample. Loops over time are left alone: "
                   "recurrent ops, numbers read or drawn, and anything that could bring a state in: sums and joins before the first layer, or in turns of a few layers.",
     .costs = "Every sample pays dispatch and Python of all layers, forward and backward; products of one row read all weights for it; and the gradients of each weight are "
              "summed turn by turn. The expected gain takes ops of one sample to what a batch takes at least: products at the best rate in the trace (40 GFLOP/s per thread "
              "where none is as fast), others a nanosecond per element and what they take beyond 40 microseconds.",
     .fix_hone = "Does not occur: programs are built for a batch.",
     .fix_pytorch = "out = model(x)                              # all samples at once, (B, ...), instead of model(x[i:i+1]) for each i\n"
                    "loss = loss_fn(out, y)                      # the mean over the batch; batch norms see all of it\n"
                    "# samples of different lengths: pad_sequence and a mask, or batches of one length\n"
                    "# a gradient of each sample: torch.func.vmap(torch.func.grad(loss_of_one), in_dims=(None, 0, 0))(params, x, y)"},
    {.id = "emulated-precision", .effort = EFFORT_LOW,
     .summary = "Products run in bf16 or fp16 on a CPU that has no units for them.",
     .recognised = "In a trace of a CPU with shapes: products and convolutions of 16 bits that are large enough to tell stay below 30 GFLOP/s per thread, where units for "
                   "them do hundreds; how many threads there are is told by buffers that have a row for each. Not where threads wait for each other.",
     .costs = "Without such units (avx512_bf16, amx_bf16, bf16 of ARMv8.6) every operand is widened before it is multiplied, attention falls back to code that is not tuned, and "
              "autocast casts weights and activations in every step: 1.4 to 3.6 times the time of f32 where it was measured. The expected gain has products at "
              "3.5 times their rate, 40 GFLOP/s per thread at least, attention at half of that, convolutions at 40, and no casts.",
     .fix_hone = "optimize.precision: bf16 is taken where it wins; hone doctor says whether the CPU has units for it.",
     .fix_pytorch = "loss = loss_fn(model(x), y)                 # in f32, without torch.autocast('cpu', ...); weights too: model.float()\n"
                    "# what the CPU has: lscpu | grep -o -E 'avx512_bf16|amx_bf16|bf16'; torch.cpu._is_avx512_bf16_supported()\n"
                    "enabled = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()\n"
                    "with torch.autocast('cpu', dtype=torch.bfloat16, enabled=enabled):      # where a program runs on both kinds\n"
                    "    loss = loss_fn(model(x), y)"},
    {.id = NULL},
};

const struct rule_text *rule_text_find(const char *id)
{
    for (const struct rule_text *t = rule_texts; t->id; t++)
        if (!strcmp(t->id, id))
            return t;
    return NULL;
}
