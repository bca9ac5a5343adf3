"""In the style of a Trainer: a class with callbacks and an optimizer of its own making, which wraps the one of torch."""
import os
import time

import torch
from torch import nn


class WrappedOptimizer(torch.optim.Optimizer):
    """As accelerate's: an Optimizer that is none, and calls the one inside."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def step(self, closure=None):
        return self.optimizer.step(closure)

    def zero_grad(self, set_to_none=True):
        self.optimizer.zero_grad(set_to_none)


class Adam(torch.optim.Adam):
    """A step that calls the step it comes from."""

    def step(self, closure=None):
        for group in self.param_groups:
            group["lr"] *= 0.999
        return super().step(closure)


class Callback:
    def __init__(self):
        self.clock = []

    def on_backward_end(self):
        self.clock.append(time.perf_counter())

    def on_step_end(self, step, loss):
        if step % 10 == 0:
            print({"step": step, "loss": round(loss.item(), 6)})


class Trainer:
    def __init__(self, model, data, callbacks):
        self.model, self.data, self.callbacks = model, data, callbacks
        self.optimizer = WrappedOptimizer(Adam(model.parameters(), lr=1e-3))

    def compute_loss(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self.model(x), y)

    def training_step(self, batch):
        self.model.train()
        loss = self.compute_loss(batch)
        loss.backward()
        return loss.detach()

    def train(self, steps):
        for step in range(steps):
            loss = self.training_step(self.data[step % len(self.data)])
            for callback in self.callbacks:
                callback.on_backward_end()
            self.optimizer.step()
            self.optimizer.zero_grad()
            for callback in self.callbacks:
                callback.on_step_end(step, loss)


torch.manual_seed(0)
torch.set_num_threads(1)
seen = Callback()
batches = [(torch.randn(64, 128), torch.randn(64, 8)) for _ in range(4)]
Trainer(nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 8)), batches, [seen]).train(60)
if os.environ.get("CLOCK"):
    open(os.environ["CLOCK"], "w").write(" ".join(map(repr, seen.clock)))
