"""A model that `hone export --to torch` wrote: plain PyTorch, to read, to run and to train on.

    from model import load
    model = load(".")                       # config.json and model.safetensors of this folder
    logits = model(torch.tensor([[1, 2, 3]]))

Run as a program it prints the most likely next token: python3 model.py 1 2 3
"""
import json
import math
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def norm(c):
    return RMSNorm(c["dim"], c["norm_eps"]) if c["arch"] == "llama" else nn.LayerNorm(c["dim"], eps=c["norm_eps"])


def speeds(c):  # (D/2): radians per place of each pair
    size = c["dim"] // c["heads"]
    plain = c["rope_base"] ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    if c["rope_scaling"] == "none":
        return plain
    kept = torch.zeros_like(plain)
    if c["rope_scaling"] == "llama3":  # what turns often within the first context keeps its speed
        turns = c["rope_context"] * plain / (2 * math.pi)
        kept = ((turns - c["rope_low"]) / (c["rope_high"] - c["rope_low"])).clamp(0, 1)
    return plain * kept + plain / c["rope_factor"] * (1 - kept)


def rotate(x, config):  # (B, H, T, D): neighbours are pairs
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), speeds(config))
    a, b, c, s = x[..., 0::2], x[..., 1::2], angle.cos().to(x), angle.sin().to(x)
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.size = c, c["dim"] // c["heads"]
        bias = c["arch"] != "llama"
        self.q = nn.Linear(c["dim"], c["dim"], bias=bias)
        self.k = nn.Linear(c["dim"], c["kv_heads"] * self.size, bias=bias)
        self.v = nn.Linear(c["dim"], c["kv_heads"] * self.size, bias=bias)
        self.o = nn.Linear(c["dim"], c["dim"], bias=bias)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.c["arch"] == "llama":
            q, k = rotate(q, self.c), rotate(k, self.c)
        groups = self.c["heads"] // self.c["kv_heads"]
        y = F.scaled_dot_product_attention(q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1), is_causal=True)
        return self.o(y.transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.arch = c["arch"]
        self.attn, self.n1, self.n2 = Attention(c), norm(c), norm(c)
        if self.arch == "llama":
            self.g = nn.Linear(c["dim"], c["ffn"], bias=False)
        self.u = nn.Linear(c["dim"], c["ffn"], bias=self.arch != "llama")
        self.dn = nn.Linear(c["ffn"], c["dim"], bias=self.arch != "llama")

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


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.emb = nn.Embedding(c["vocab"], c["dim"])
        self.pos = None if c["arch"] == "llama" else nn.Embedding(c["positions"], c["dim"])
        self.seg = nn.Embedding(c["segments"], c["dim"]) if c["segments"] else None
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.norm = norm(c)
        self.head = None if c["tied_head"] else nn.Linear(c["dim"], c["vocab"], bias=False)
        self.children_of = self.tree(c["tree"])

    @staticmethod
    def tree(levels):
        """Of every node, numbered level by level: the nodes below it."""
        below, row = {}, [0]
        for n in levels:
            first = row[-1] + 1
            for i, node in enumerate(row):
                below[node] = list(range(first + i * n, first + (i + 1) * n))
            row = list(range(first, first + len(row) * n))
        return below

    def node(self, i, x):
        y = self.blocks[i](x)
        below = [self.node(child, y) for child in self.children_of.get(i, ())]
        return torch.stack(below).mean(0) if below else y

    def forward(self, tokens, segments=None):
        x = self.emb(tokens)
        if self.pos is not None:
            x = x + self.pos.weight[: tokens.shape[1]]
        if self.seg is not None:
            x = x + self.seg(torch.zeros_like(tokens) if segments is None else segments)
        if self.c["arch"] == "k1":
            x = self.node(0, x)
        else:
            for block in self.blocks:
                x = block(x)
        return self.norm(x) @ (self.emb if self.head is None else self.head).weight.T


def load(folder="."):
    folder = pathlib.Path(folder)
    model = Model(json.loads((folder / "config.json").read_text()))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model


if __name__ == "__main__":
    with torch.no_grad():
        logits = load(pathlib.Path(__file__).resolve().parent).eval()(torch.tensor([[int(word) for word in sys.argv[1:]]]))[0, -1]
    best = int(logits.argmax())
    print(best, f"{math.exp(torch.log_softmax(logits, 0)[best]):.6f}")
