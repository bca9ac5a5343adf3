"""A training loop and a session for it in this process, for tests of the trial's parts."""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "watch", "hook"))
from hone_hook.device import Device                 # noqa: E402
from hone_hook.trial import run, Trial              # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.norm(self.conv(x)))).mean((2, 3)))


class Session:
    """As much of a session as a phase uses."""

    def __init__(self, optimizers, out):
        self.torch, self.options, self.out = torch, {"out": str(out)}, str(out)
        self.rank, self.world_size, self.steps = 0, 1, 0
        self.optimizers = optimizers
        self.several_threads = False
        self.device = Device(torch, optimizers[0])
        self.result, self.notes = {}, []

    def note(self, text):
        self.notes.append(text)

    def save(self):
        pass


class Program:
    """model, loader, optimizer, and steps of them."""

    def __init__(self, set_to_none=True, **settings):
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, **settings)
        data = torch.utils.data.TensorDataset(torch.randn(64, 3, 6, 6), torch.randint(0, 3, (64,)))
        self.loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
        self.iterator = iter(self.loader)
        self.set_to_none = set_to_none

    def batch(self):
        try:
            return next(self.iterator)
        except StopIteration:
            self.iterator = iter(self.loader)
            return next(self.iterator)

    def step(self):
        x, y = self.batch()
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad(set_to_none=self.set_to_none)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def numbers(self):
        """Every number of model and optimizer, and the next random one."""
        held = list(self.model.parameters()) + list(self.model.buffers()) + [v for s in self.optimizer.state.values() for v in s.values()]
        return [t.detach().clone() for t in held]


def drive(program, tmp_path, most=2000, seen=None, **options):
    """Trains until the trial is done; its result. seen(trial, step) is called in every step."""
    for _ in range(3):
        program.step()
    session = Session([program.optimizer], tmp_path)
    trial = Trial(dict({"seconds": 0, "pairs": 3, "turn_steps": 1}, **options))
    trial.begin(session)
    for step in range(most):
        program.step()
        session.steps += 1
        if seen:
            seen(trial, step)
        if trial.boundary(session):
            trial.end(session)
            return session.result["trial"]
    raise AssertionError("the trial did not end")


__all__ = ["Net", "Program", "Session", "Trial", "drive", "run"]
