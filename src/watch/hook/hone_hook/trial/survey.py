"""What a program is made of, seen over some of its steps before a trial: models that it calls, loaders that it reads, gradients that it fills."""
from time import perf_counter

import torch

from . import roots
from .batches import Tapes
from .heap import Heap, Written
from .loaders import Loaders
from .state import parameters_of

STEPS = 4


class Fills:
    """Calls of zero_grad that fill gradients with zeros, and whether every gradient was then written by a backward pass."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.calls, self.filled, self.all_touched = 0, {}, True

    def begin(self):
        self.plain = [(kind, kind.zero_grad) for kind in (torch.optim.Optimizer, torch.nn.Module)]
        for kind, plain in self.plain:
            kind.zero_grad = self._seen(plain)

    def _seen(self, plain):
        def zero_grad(holder, set_to_none=True):
            plain(holder, set_to_none=set_to_none)
            if not set_to_none:
                self.calls += 1
                self.filled = {id(p): p.grad._version for p in self.parameters if p.grad is not None}
        return zero_grad

    def step(self):
        if any(p.grad is not None and self.filled.get(id(p)) == p.grad._version for p in self.parameters):
            self.all_touched = False
        self.filled = {}

    def end(self):
        for kind, plain in self.plain:
            kind.zero_grad = plain


class Facts:
    """Filled by begin, step and end, which a trial calls between steps; then read by switches."""

    def __init__(self, session, broke):
        self.device = session.device
        self.ranks_here = max(session.result.get("ranks_here", 1), 1)           # on this machine, whose CPUs they share
        self.optimizers = list(session.optimizers) or Heap().optimizers
        self.parameters = parameters_of(self.optimizers)
        self.compiled = getattr(session, "compiled", set())     # ids of optimizers
        self.tapes = Tapes(broke)
        self.loaders = Loaders(self.tapes)
        self.roots, self.others = [], []
        self.open = False

    def begin(self):
        self.open = True
        self._roots, self._fills = roots.Survey(self.parameters), Fills(self.parameters)
        self._written = Written()
        self._roots.begin()
        self._fills.begin()
        self.tapes.begin_survey()
        self.device.synchronize()
        self._started, self._steps = perf_counter(), 0

    def step(self):
        self._steps += 1
        self._fills.step()

    def end(self):
        if not self.open:
            return
        self.open = False
        self.device.synchronize()
        seconds = perf_counter() - self._started
        self.step_s = seconds / max(self._steps, 1)
        self.roots = self._roots.end()
        self._fills.end()
        self.fills, self.all_touched = self._fills.calls > 0, self._fills.all_touched
        self.others = self._written.now()
        self.load_share = sum(tape.loads for tape in self.tapes.all()) / seconds
        self.tapes.begin_trial(seconds)
        self.heap = Heap()

    def has_convolutions(self):
        return any(root.has((torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)) for root in self.roots)
