"""Two models with an optimizer each, in turns. Prints every loss."""
import sys

import torch
from torch import nn

torch.manual_seed(6)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
judge = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
of_generator, of_judge = torch.optim.Adam(generator.parameters(), lr=1e-3), torch.optim.Adam(judge.parameters(), lr=1e-3)
say = nn.BCEWithLogitsLoss()
for step in range(int(sys.argv[1])):
    real, fake = torch.randn(8, 8) + 2, generator(torch.randn(8, 4))
    of_judge.zero_grad()
    a = say(judge(real), torch.ones(8, 1)) + say(judge(fake.detach()), torch.zeros(8, 1))
    a.backward()
    of_judge.step()
    of_generator.zero_grad()
    b = say(judge(fake), torch.ones(8, 1))
    b.backward()
    of_generator.step()
    print("loss", step, a.item(), b.item(), flush=True)
