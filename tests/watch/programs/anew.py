"""Optimizers that come later, each of whose steps takes 10 ms: WAY is `once`, at step AT; `folds`, a new one every twelve steps; `inner`, a new one in every step."""
import sys
import time

import torch

STEP_S = 0.01


def step(optimizer):
    torch.autograd.backward(None)
    time.sleep(STEP_S)
    optimizer.step()


def main(way, at=0):
    optimizer = torch.optim.SGD()
    for i in range(96):
        if (way == "once" and i == int(at)) or (way == "folds" and i % 12 == 0):
            optimizer = torch.optim.SGD()
        if way == "inner":
            step(torch.optim.SGD())
        step(optimizer)
    print("done")


main(*sys.argv[1:])
