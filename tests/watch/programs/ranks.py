"""Ranks of torchrun on CPUs: DistributedDataParallel over gloo."""
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(dist.get_rank())
clock = []
for step in range(50):
    x = torch.randn(32, 64, generator=generator)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    clock.append(time.perf_counter())
    optimizer.step()
total = loss.detach()
dist.all_reduce(total)
if dist.get_rank() == 0:
    print("loss %.6f over %d ranks" % (total.item(), dist.get_world_size()))
    if os.environ.get("CLOCK"):
        open(os.environ["CLOCK"], "w").write(" ".join(map(repr, clock)))
dist.destroy_process_group()
