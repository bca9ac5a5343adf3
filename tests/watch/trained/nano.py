"""In the style of nanoGPT: batches drawn by random numbers, micro-batches, clipping, AdamW in two groups. Prints every loss."""
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
np.random.seed(2)
numbers = np.random.default_rng(3)
text = np.random.randint(0, 32, 4096)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.mix, self.head = nn.Embedding(32, 16), nn.Linear(16, 16), nn.Linear(16, 32)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, y):
        logits = self.head(self.drop(F.gelu(self.mix(self.table(x)))))
        return logits, F.cross_entropy(logits.view(-1, 32), y.view(-1))


def get_batch():
    at = torch.randint(0, 4000, (4,)).tolist() + numbers.integers(0, 4000, 4).tolist() + np.random.randint(0, 4000, 2).tolist()
    x = torch.stack([torch.from_numpy(text[i:i + 16]) for i in at])
    y = torch.stack([torch.from_numpy(text[i + 1:i + 17]) for i in at])
    return x, y


model = Model()
decay = [p for p in model.parameters() if p.dim() > 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}],
                              lr=1e-2, foreach=False)
for step in range(int(sys.argv[1])):
    total = 0
    for _ in range(3):
        _, loss = model(*get_batch())
        (loss / 3).backward()
        total += loss.item() / 3
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("loss", step, total, flush=True)
