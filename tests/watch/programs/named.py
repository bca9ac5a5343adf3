"""Steps that no optimizer takes: they are told by the name of a function, of this script, of a class or of a module beside it."""
import sys
import time

import torch  # noqa: F401
import named_module


def train_step():
    time.sleep(0.001)


class Trainer:
    def step(self):
        time.sleep(0.001)


trainer = Trainer()
for i in range(60):
    {"function": train_step, "method": trainer.step, "module": named_module.train_step}[sys.argv[1]]()
print("done")
