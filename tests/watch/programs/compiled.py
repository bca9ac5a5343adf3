"""A training loop of which torch.compile has a part: PART OPTIMIZER BACKEND GRAPH [STEPS]. What it prints at the end is also how often the compiler was at work."""
import os
import sys
import time
import warnings

warnings.simplefilter("ignore")
import torch  # noqa: E402
from torch import nn  # noqa: E402

part, name, backend, graph = sys.argv[1:5]
device = os.environ.get("DEVICE", "cpu")
steps = int(sys.argv[5]) if len(sys.argv) > 5 else 60
torch.manual_seed(0)
torch.set_num_threads(1)


class Own(torch.optim.Optimizer):
    """Of the program: nothing in it breaks a graph."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"])


def compiled(function):
    return torch.compile(function, backend=backend, fullgraph=graph == "full")


model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 8)).to(device)
optimizer = Own(model.parameters(), lr=0.01) if name == "Own" else getattr(torch.optim, name)(model.parameters(), lr=0.01)
x = torch.randn(32, 64).to(device)
clock = []


def forward(x):
    return model(x).square().mean()


def update():
    optimizer.step()


def train_step(x):
    loss = forward(x)
    loss.backward()
    clock.append(time.perf_counter())
    update()
    optimizer.zero_grad(set_to_none=True)
    return loss


def whole_step(x):
    loss = forward(x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


if part == "forward":
    forward = compiled(forward)
elif part == "step":
    update = compiled(optimizer.step)
elif part == "update":
    update = compiled(update)
elif part == "all":
    train_step = compiled(whole_step)
for i in range(steps):
    if part == "all":
        clock.append(time.perf_counter())
    loss = train_step(x)
    if i % 10 == 0:
        print("step %d loss %.7f" % (i, loss.item()))

counters = torch._dynamo.utils.counters
print("weights %r graphs %d breaks %d" % (sum(p.double().sum().item() for p in model.parameters()), counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())))
if os.environ.get("CLOCK"):
    open(os.environ["CLOCK"], "w").write(" ".join(map(repr, clock)))
