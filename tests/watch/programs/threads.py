"""Steps that are taken in threads, as many as the first argument says, which all begin at once: each has a model of its own, and the same random numbers."""
import sys
import threading

import torch

torch.set_num_threads(1)
count = int(sys.argv[1])
begin, sums = threading.Barrier(count), [0.0] * count


def train(at):
    generator = torch.Generator().manual_seed(at)
    model = torch.nn.Linear(16, 16, bias=False)
    torch.nn.init.normal_(model.weight, generator=generator)
    optimizer = torch.optim.Adam(model.parameters())
    begin.wait()
    for _ in range(300):
        model(torch.rand(8, 16, generator=generator)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    sums[at] = model.weight.sum().item()


threads = [threading.Thread(target=train, args=(at,)) for at in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("weights", sums)
