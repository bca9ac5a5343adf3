#!/usr/bin/env python3
"""Makes tests/fixtures/model_regions.safetensors: what PyTorch computes for a small model of regions (needs torch and safetensors).

Every sample is computed by itself, without padding, in double precision; the tensors that are saved are padded rows of SEQ tokens. So
they hold for rows of any length, and for samples that share a row. tests/unit/test_regions.c has the same sizes at its top.
usage: make-regions-fixture.py [DIR]
"""
import importlib.util
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("fixtures", HERE / "make-fixtures.py")
fixtures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixtures)

FEATURES, ACTIONS, TYPES, IDS = 10, 5, 3, 83
DIM, LAYERS, HEADS, FFN, SEQ, POSITIONS = 20, 2, 5, 36, 13, 17
LENGTHS = (13, 6, 9, 4)
STEPS, TYPE_WEIGHT = 12, 0.1


class Regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(FEATURES, DIM)
        self.emb, self.pos, self.seg = nn.Embedding(IDS, DIM), nn.Embedding(POSITIONS, DIM), nn.Embedding(TYPES, DIM)
        self.blocks = nn.ModuleList(fixtures.Block("postln", DIM, HEADS, HEADS, FFN) for _ in range(LAYERS))
        self.actions, self.kinds = nn.Linear(DIM, ACTIONS), nn.Linear(DIM, TYPES)

    def forward(self, features, ids, segments):  # (T, FEATURES), (T), (T)
        x = self.read(features) + torch.where(ids[:, None] >= 0, self.emb(ids.clamp(min=0)), torch.zeros(()).double())
        x = (x + self.pos.weight[: len(ids)] + self.seg(segments))[None]
        for block in self.blocks:
            x = block(x)
        return self.actions(x[0]), self.kinds(x[0])


def make_samples():
    """What a query has as its target is of type 0, with an action, but for one sample."""
    samples = []
    for i, n in enumerate(LENGTHS):
        ids = torch.randint(0, IDS, (n,))
        ids[torch.rand(n) < 0.6] = -1
        kind = 2 if i == 2 else 0
        samples.append({"features": torch.randn(n, FEATURES).float().double(), "ids": ids, "segments": torch.randint(0, TYPES, (n,)),
                        "action": -1 if kind else int(torch.randint(0, ACTIONS, ())), "type": kind})
    return samples


def loss_of(model, samples):
    actions, types, logits = [], [], []
    for s in samples:
        a, t = model(s["features"], s["ids"], s["segments"])
        logits.append(a)
        types.append(F.cross_entropy(t[-1:], torch.tensor([s["type"]])))
        if s["type"] == 0:
            actions.append(F.cross_entropy(a[-1:], torch.tensor([s["action"]])))
    return torch.stack(actions).mean() + TYPE_WEIGHT * torch.stack(types).mean(), logits


def rows(values, fill):
    out = torch.full((len(LENGTHS), SEQ, *values[0].shape[1:]), fill, dtype=values[0].dtype)
    for i, v in enumerate(values):
        out[i, : len(v)] = v
    return out


def at_query(samples, key):
    return rows([torch.tensor([-1] * (n - 1) + [s[key]]) for s, n in zip(samples, LENGTHS)], -1)


def train(model, samples):
    """As fixtures.train, which has other inputs."""
    optimizer = fixtures.make_optimizer(list(model.named_parameters()))
    losses = []
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = fixtures.lr_at(step)
        optimizer.zero_grad()
        loss, _ = loss_of(model, samples)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), fixtures.CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "tests/fixtures"
    torch.manual_seed(5)
    model = Regions()
    for name, p in model.named_parameters():
        with torch.no_grad():
            p.normal_(0, 0.25 if p.dim() > 1 else 0.2)
            if p.dim() == 1 and name.endswith("weight"):
                p.add_(1)
    model.double()
    samples = make_samples()
    loss, logits = loss_of(model, samples)
    loss.backward()
    out = {"features": rows([s["features"] for s in samples], 0.0), "tokens": rows([s["ids"] for s in samples], -1),
           "segments": rows([s["segments"] for s in samples], 0), "targets": at_query(samples, "action"), "types": at_query(samples, "type"),
           "lengths": torch.tensor(LENGTHS), "loss": loss, "logits": rows(logits, 0.0)}
    for name, p in model.named_parameters():
        out["param." + name], out["grad." + name] = p.detach().clone(), p.grad.clone()
    out["losses"] = torch.tensor(train(model, samples), dtype=torch.float64)
    save_file(fixtures.single(out), folder / "model_regions.safetensors")


if __name__ == "__main__":
    main()
