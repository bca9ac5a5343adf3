"""A class that trains, as many people have one: an average of weights, validation and checkpoints now and then, a scaler. Prints every loss."""
import copy
import os
import sys

import torch
from torch import nn


class Trainer:
    def __init__(self, folder):
        torch.manual_seed(4)
        self.folder = folder
        self.model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
        self.average = copy.deepcopy(self.model)
        self.shadow = [p.detach().clone() for p in self.model.parameters()]
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.scaler = (torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=7) if hasattr(torch.amp, "GradScaler") else
                       torch.cuda.amp.GradScaler(enabled=False))
        self.generator = torch.Generator().manual_seed(5)

    def batch(self):
        x = torch.randn(16, 8, generator=self.generator)
        return x, x.sum(1, keepdim=True)

    def train_step(self):
        x, y = self.batch()
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.mse_loss(self.model(x).float(), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        with torch.no_grad():
            for shadow, average, p in zip(self.shadow, self.average.parameters(), self.model.parameters()):
                shadow.lerp_(p, 0.1)
                average.lerp_(p, 0.1)
        return loss.item()

    def validate(self):
        self.model.eval()
        x = torch.linspace(-1, 1, 64).view(8, 8)
        with torch.no_grad():
            value = self.model(x).sum().item()
        self.model.train()
        return value

    def weigh(self):
        return sum(s.sum().item() for s in self.shadow), sum(p.sum().item() for p in self.average.parameters()), self.scaler.get_scale()

    def fit(self, steps):
        for step in range(steps):
            loss = self.train_step()
            print("loss", step, loss, *self.weigh(), flush=True)
            if step % 40 == 39:
                print("valid", self.validate(), flush=True)
                torch.save(self.model.state_dict(), os.path.join(self.folder, "model.pt"))


Trainer(sys.argv[2]).fit(int(sys.argv[1]))
