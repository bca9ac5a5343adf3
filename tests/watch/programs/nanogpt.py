"""In the style of nanoGPT: a script whose loop is at its top level, with gradient accumulation, autocast and a scaler that are on with AMP, and a decayed rate."""
import math
import os
import time
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)
torch.set_num_threads(1)
batch_size, block_size, vocab, n_embd, n_layer = 8, 32, 65, 64, 2
max_iters, gradient_accumulation_steps, grad_clip = int(os.environ.get("STEPS", "50")), int(os.environ.get("ACCUMULATE", "1")), 1.0
ctx = torch.amp.autocast(device_type="cpu", dtype=torch.bfloat16) if os.environ.get("AMP") else nullcontext()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, 4, C // 4).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(n_embd, dim=2))
        x = x + self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, vocab), targets.view(-1))


data = torch.randint(vocab, (10000,))


def get_batch():
    ix = torch.randint(len(data) - block_size, (batch_size,))
    return torch.stack([data[i:i + block_size] for i in ix]), torch.stack([data[i + 1:i + 1 + block_size] for i in ix])


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=bool(os.environ.get("AMP"))) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler(enabled=False)
clock = []                      # before the optimizer, step by step
X, Y = get_batch()
for iter_num in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = 1e-3 * 0.5 * (1 + math.cos(math.pi * iter_num / max_iters))
    for micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    clock.append(time.perf_counter())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if iter_num % 10 == 0:
        print(f"iter {iter_num}: loss {loss.item():.6f}")
if os.environ.get("CLOCK"):
    open(os.environ["CLOCK"], "w").write(" ".join(map(repr, clock)))
