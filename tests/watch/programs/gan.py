"""Two optimizers in turns, as a GAN has them: a step is one call of each. With a word, three of the first for one of the second."""
import sys
import time

import torch

generator, discriminator = torch.optim.SGD(), torch.optim.SGD()
for i in range(60):
    for _ in range(3 if len(sys.argv) > 1 else 1):
        time.sleep(0.001)
        torch.autograd.backward(None)
        discriminator.step()
    time.sleep(0.001)
    torch.autograd.backward(None)
    generator.step()
print("done")
