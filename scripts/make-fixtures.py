#!/usr/bin/env python3
"""Makes tests/fixtures/{model,train,weights}_*: what PyTorch computes for small models (needs torch and safetensors).

The models are written in the plain style, with the parameter names of src/model. Everything is computed in double
precision from parameters that single precision can hold, but for curve_*: those are the losses of the runs of train_*
with autocast to bf16. tests/unit/test_models.c has the same settings at its top.
usage: make-fixtures.py [DIR]
       make-fixtures.py --curves [DIR]      only curve_*, from the train_* that are there
"""
import math
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

# name: vocab, dim, layers, heads, kv_heads, ffn, seq, batch, segments
MODELS = {
    "gpt": (37, 24, 2, 3, 3, 56, 10, 3, 0),
    "llama": (41, 32, 2, 4, 2, 48, 9, 2, 0),
    "postln": (29, 20, 2, 5, 5, 36, 7, 4, 3),
    "k1": (23, 12, 10, 3, 3, 20, 6, 3, 0),
    "untied": (31, 16, 2, 4, 2, 24, 5, 3, 0),
}
ARCHS = {"untied": "llama"}  # of models whose name is not their architecture
UNTIED = ("postln", "k1", "untied")  # the head has a matrix of its own
TREE = (3, 2)  # children of a node, level by level: 1 + 3 + 6 nodes
SELECTED = 5  # nodes that a step updates: the root, its children, whose gradients are the largest, and a leaf
STEPS, BATCHES = 50, 5  # steps cycle through the batches
LR, MIN_LR, WARMUP, WEIGHT_DECAY, CLIP = 3e-3, 3e-4, 8, 0.1, 1.0
BETAS, EPS = (0.9, 0.95), 1e-8


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def norm(arch, dim):
    return RMSNorm(dim) if arch == "llama" else nn.LayerNorm(dim, eps=1e-5)


def rotate(x):  # (B, H, T, D): neighbours are pairs
    T, D = x.shape[-2:]
    angle = torch.outer(torch.arange(T, dtype=x.dtype), 10000.0 ** (-torch.arange(0, D, 2, dtype=x.dtype) / D))
    a, b, c, s = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, arch, dim, heads, kv_heads):
        super().__init__()
        self.arch, self.heads, self.kv_heads, self.size = arch, heads, kv_heads, dim // heads
        bias = arch != "llama"
        self.q = nn.Linear(dim, dim, bias=bias)
        self.k = nn.Linear(dim, kv_heads * self.size, bias=bias)
        self.v = nn.Linear(dim, kv_heads * self.size, bias=bias)
        self.o = nn.Linear(dim, dim, bias=bias)

    def forward(self, x):
        B, T, D = x.shape
        q = self.q(x).view(B, T, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(B, T, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(x).view(B, T, self.kv_heads, self.size).transpose(1, 2)
        if self.arch == "llama":
            q, k = rotate(q), rotate(k)
        k = k.repeat_interleave(self.heads // self.kv_heads, 1)
        v = v.repeat_interleave(self.heads // self.kv_heads, 1)
        mask = torch.triu(torch.full((T, T), float("-inf"), dtype=x.dtype), 1)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.size) + mask, -1)
        return self.o((weights @ v).transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self, arch, dim, heads, kv_heads, ffn):
        super().__init__()
        self.arch = arch
        self.attn = Attention(arch, dim, heads, kv_heads)
        self.n1, self.n2 = norm(arch, dim), norm(arch, dim)
        if arch == "llama":
            self.g = nn.Linear(dim, ffn, bias=False)
        self.u = nn.Linear(dim, ffn, bias=arch != "llama")
        self.dn = nn.Linear(ffn, dim, bias=arch != "llama")

    def mlp(self, x):
        if self.arch == "llama":
            return self.dn(F.silu(self.g(x)) * self.u(x))
        return self.dn(F.gelu(self.u(x), approximate="tanh"))

    def forward(self, x):
        if self.arch in ("postln", "k1"):
            x = self.n1(x + self.attn(x))
            return self.n2(x + self.mlp(x))
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


def children(node):
    """Of a tree that is numbered level by level."""
    first, level = 1, 1
    for n in TREE:
        start = first - level
        if start <= node < first:
            return [first + (node - start) * n + i for i in range(n)]
        level *= n
        first += level
    return []


class Model(nn.Module):
    def __init__(self, name, vocab, dim, layers, heads, kv_heads, ffn, seq, batch, segments):
        super().__init__()
        self.arch = arch = ARCHS.get(name, name)
        self.emb = nn.Embedding(vocab, dim)
        self.pos = None if arch == "llama" else nn.Embedding(seq, dim)
        self.seg = nn.Embedding(segments, dim) if segments else None
        self.blocks = nn.ModuleList(Block(arch, dim, heads, kv_heads, ffn) for _ in range(layers))
        self.norm = norm(arch, dim)
        self.head = nn.Linear(dim, vocab, bias=False) if name in UNTIED else None

    def node(self, i, x):
        y = self.blocks[i](x)
        below = [self.node(c, y) for c in children(i)]
        return torch.stack(below).mean(0) if below else y

    def forward(self, tokens, segments=None):
        x = self.emb(tokens)
        if self.pos is not None:
            x = x + self.pos.weight
        if self.seg is not None:
            x = x + self.seg(segments)
        if self.arch == "k1":
            x = self.node(0, x)
        for block in self.blocks if self.arch != "k1" else ():
            x = block(x)
        return self.norm(x) @ (self.emb.weight if self.head is None else self.head.weight).T


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=-1)


def make_model(arch, seed=42):
    """Parameters large enough that every part of the model matters, rounded to single precision."""
    torch.manual_seed(seed)
    model = Model(arch, *MODELS[arch])
    for name, p in model.named_parameters():
        with torch.no_grad():
            p.normal_(0, 0.25 if p.dim() > 1 else 0.2)
            if p.dim() == 1 and name.endswith("weight"):
                p.add_(1)
    return model.double()


def make_batch(arch, n=()):
    """Tokens and targets; every fourth target or so is padding."""
    vocab, seq, batch, segments = (MODELS[arch][i] for i in (0, 6, 7, 8))
    tokens = torch.randint(0, vocab, (*n, batch, seq))
    targets = torch.randint(0, vocab, (*n, batch, seq))
    targets[torch.rand(targets.shape) < 0.25] = -1
    return tokens, targets, torch.randint(0, segments, (*n, batch, seq)) if segments else None


def single(tensors):
    to = {torch.float64: torch.float32, torch.int64: torch.int32}
    return {k: v.detach().to(to.get(v.dtype, v.dtype)).contiguous() for k, v in tensors.items() if v is not None}


def model_fixture(arch):
    model = make_model(arch)
    tokens, targets, segments = make_batch(arch)
    logits = model(tokens, segments)
    loss = loss_of(logits, targets)
    loss.backward()
    out = {"tokens": tokens, "targets": targets, "segments": segments, "logits": logits, "loss": loss}
    for name, p in model.named_parameters():
        out["param." + name], out["grad." + name] = p, p.grad
    return single(out)


def lr_at(step):  # counted from 1
    if step <= WARMUP:
        return LR * step / WARMUP
    return MIN_LR + (LR - MIN_LR) * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def is_matrix(name, p):
    return p.dim() == 2 and not name.startswith(("emb.", "pos.", "seg."))


def make_optimizer(named):
    groups = [{"params": [p for n, p in named if is_matrix(n, p)], "weight_decay": WEIGHT_DECAY},
              {"params": [p for n, p in named if not is_matrix(n, p)], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS, foreach=False)


def train(model, tokens, targets, autocast=False):
    optimizer = make_optimizer(list(model.named_parameters()))
    losses = []
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        optimizer.zero_grad()
        i = (step - 1) % BATCHES
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = loss_of(model(tokens[i]), targets[i])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_fixture(arch):
    model = make_model(arch)
    named = list(model.named_parameters())
    out = {"param." + name: p.detach().clone() for name, p in named}
    tokens, targets, _ = make_batch(arch, (BATCHES,))
    losses = train(model, tokens, targets)
    out |= {"tokens": tokens, "targets": targets, "losses": torch.tensor(losses, dtype=torch.float64)}
    out |= {"final." + name: p for name, p in named}
    print(f"train {arch}: loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    return single(out)


def curve_fixture(arch, run):
    """The run of a train_* again, from the same parameters and batches: the model in single precision, autocast to bf16."""
    model = Model(arch, *MODELS[arch])
    model.load_state_dict({k.removeprefix("param."): v for k, v in run.items() if k.startswith("param.")})
    losses = train(model, run["tokens"].long(), run["targets"].long(), autocast=True)
    apart = (torch.tensor(losses) - run["losses"]).abs().max().item()
    print(f"curve {arch} in bf16: loss {losses[0]:.4f} -> {losses[-1]:.4f}, {apart / losses[0]:.1e} of the first from the exact one")
    return {"losses": torch.tensor(losses)}


def score_of(block, kind):
    """The norm of a node's gradient, or the sum of the norms of its tensors, of which q, k and v are one."""
    units = {}
    for name, p in block.named_parameters():
        parts = name.split(".")
        unit = "qkv." + parts[-1] if parts[-2] in ("q", "k", "v") else name
        units.setdefault("" if kind == "l2" else unit, []).append(p.grad.square().sum())
    return sum(torch.stack(squares).sum().sqrt() for squares in units.values())


def select_run(kind, seed, least=0):
    """Trains with the highest scores alone: the others have no gradient, so AdamW leaves them, their moments and counts as they are.
    Returns what it gave, and the least margin between the last that was selected and the first that was not; stops below `least`."""
    model = make_model("k1", seed)
    named = list(model.named_parameters())
    first = {"param." + name: p.detach().clone() for name, p in named}
    tokens, targets, _ = make_batch("k1", (BATCHES,))
    optimizer = make_optimizer(named)
    losses, masks, margin = [], [], math.inf
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        optimizer.zero_grad()
        i = (step - 1) % BATCHES
        loss = loss_of(model(tokens[i]), targets[i])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        scores = torch.stack([score_of(b, kind) for b in model.blocks])
        order = scores.argsort(descending=True)
        margin = min(margin, ((scores[order[SELECTED - 1]] - scores[order[SELECTED]]) / scores[order[SELECTED]]).item())
        if margin < least:
            return None, margin
        mask = torch.zeros(len(model.blocks), dtype=torch.int64)
        mask[order[:SELECTED]] = 1
        for j, block in enumerate(model.blocks):
            for p in block.parameters() if not mask[j] else ():
                p.grad = None
        optimizer.step()
        losses.append(loss.item())
        masks.append(mask)
    out = {f"{kind}.losses": torch.tensor(losses, dtype=torch.float64), f"{kind}.selected": torch.stack(masks)}
    out |= {f"{kind}.final." + name: p for name, p in named}
    return first | {"tokens": tokens, "targets": targets} | out, margin


def select_fixture(seeds=100):
    """The seed with the widest margins: sets that are selected must not hang on rounding."""
    best, least = 0, 0
    for seed in range(seeds):
        margin = min(select_run("l2", seed, least)[1], select_run("sum", seed, least)[1])
        best, least = (seed, margin) if margin > least else (best, least)
    print(f"select: seed {best}, least margin {100 * least:.2f} %")
    return single(select_run("l2", best)[0] | select_run("sum", best)[0])


def weights_fixture(arch, folder, windows=6):
    """A plain PyTorch checkpoint, a shard of tokens, and the loss of the one on the other: tests/cli/init.sh."""
    model = make_model(arch)
    vocab, seq = MODELS[arch][0], MODELS[arch][6]
    tokens = torch.randint(0, vocab, (windows * seq + 1,))
    loss = loss_of(model(tokens[:-1].view(windows, seq), None), tokens[1:].view(windows, seq))
    save_file(single(model.state_dict()), folder / f"weights_{arch}.safetensors")
    (folder / f"weights_{arch}.bin").write_bytes(b"".join(int(t).to_bytes(2, "little") for t in tokens))
    (folder / f"weights_{arch}.loss").write_text(f"{loss.item():.9f}\n")


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "tests/fixtures"
    curves = sys.argv[1:2] == ["--curves"]
    rest = sys.argv[1 + curves :]
    folder = pathlib.Path(rest[0]) if rest else default
    for arch in MODELS if not curves else ():
        save_file(model_fixture(arch), folder / f"model_{arch}.safetensors")
    for arch in ("gpt", "llama") if not curves else ():
        save_file(train_fixture(arch), folder / f"train_{arch}.safetensors")
        weights_fixture(arch, folder)
    for arch in ("gpt", "llama"):
        save_file(curve_fixture(arch, load_file(folder / f"train_{arch}.safetensors")), folder / f"curve_{arch}.safetensors")
    if not curves:
        save_file(select_fixture(), folder / "train_k1.safetensors")


if __name__ == "__main__":
    main()
