"""A training loop that is run in another way than most: WAY."""
import multiprocessing
import os
import sys
import threading
import time
from importlib import util


def train(steps=60):
    import torch
    optimizer = torch.optim.SGD()
    for _ in range(steps):
        time.sleep(0.002)
        torch.autograd.backward(None)
        optimizer.step()


def main(way):
    if way in ("spawn", "twice"):
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=train) for _ in range(1 if way == "spawn" else 2)]
        for p in processes:
            p.start()
        for p in processes:
            p.join()
    elif way == "thread":
        thread = threading.Thread(target=train, args=(100000,))
        thread.start()
        thread.join()
        time.sleep(1000)
    elif way == "asks":
        print("torch is there:", util.find_spec("torch") is not None)
        train()
    elif way == "silent":
        os.chdir("/")
        os.write(1, b"\xff\xfe\n")
        os.close(2)
        train()
    print("trained" if way != "silent" else "still")


if __name__ == "__main__":
    main(sys.argv[1])
