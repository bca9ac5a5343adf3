"""Ranks of torchrun over gloo: DistributedDataParallel with buffers, buckets of 2 MB, a DistributedSampler, checkpoints of rank 0. Every rank prints its losses, to a file of its own.

BREAKS=forward: rank 1 alone has no kernel for 16 bits; BREAKS=backward: no rank has one for their gradients."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, breaks = dist.get_rank(), os.environ.get("BREAKS")


def is_narrow():
    try:
        return torch.is_autocast_enabled("cpu")
    except TypeError:
        return torch.is_autocast_cpu_enabled()


class Fragile(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.narrow = is_narrow()
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.narrow and breaks == "backward":
            raise RuntimeError("no kernel for gradients")
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.norm, self.middle, self.head = nn.Linear(64, 1024), nn.BatchNorm1d(1024), nn.Linear(1024, 700), nn.Linear(700, 4)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        if breaks == "forward" and rank == 1 and is_narrow():
            raise RuntimeError("no kernel")
        return self.head(Fragile.apply(self.middle(self.drop(torch.relu(self.norm(self.wide(x)))))))


torch.manual_seed(7)
model = DistributedDataParallel(Net(), bucket_cap_mb=2, gradient_as_bucket_view="views" in sys.argv)
torch.manual_seed(rank)
data = TensorDataset(torch.randn(256, 64), torch.randint(0, 4, (256,)))
sampler = DistributedSampler(data, shuffle=True, seed=1)
loader = DataLoader(data, batch_size=8, sampler=sampler)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
steps, folder = int(sys.argv[1]), sys.argv[2]
seen = epoch = 0
with open(os.path.join(folder, "losses.%d" % rank), "w") as out:
    while seen < steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
            print("loss", seen, repr(loss.item()), file=out, flush=True)
            seen += 1
            if seen % 60 == 0 and rank == 0 and "saves" in sys.argv:
                torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
            if seen == steps:
                break
dist.destroy_process_group()
