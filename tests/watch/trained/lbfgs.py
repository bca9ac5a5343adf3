"""LBFGS, whose step calls the model and the backward pass itself, some times in each, and keeps lists of what it has seen."""
import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, history_size=4)
data = torch.utils.data.TensorDataset(torch.randn(2048, 16), torch.randn(2048, 4))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)


def batches():
    while True:
        yield from loader


for step, (x, y) in zip(range(int(sys.argv[1])), batches()):
    def closure():
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss
    print("loss", step, repr(optimizer.step(closure).item()))
