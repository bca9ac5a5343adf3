"""Two networks and two optimizers, as in torch's DCGAN example; the first learns from two losses in each step."""
import os
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
netD = nn.Sequential(nn.Linear(32, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
netG = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 32))
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
clock = []
for i in range(60):
    real, noise = torch.randn(64, 32), torch.randn(64, 16)
    netD.zero_grad()
    errD_real = criterion(netD(real), torch.ones(64, 1))
    errD_real.backward()
    fake = netG(noise)
    errD_fake = criterion(netD(fake.detach()), torch.zeros(64, 1))
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    errG = criterion(netD(fake), torch.ones(64, 1))
    errG.backward()
    clock.append(time.perf_counter())
    optimizerG.step()
    if i % 20 == 0:
        print("[%d] D %.6f G %.6f" % (i, (errD_real + errD_fake).item(), errG.item()))
if os.environ.get("CLOCK"):
    open(os.environ["CLOCK"], "w").write(" ".join(map(repr, clock)))
