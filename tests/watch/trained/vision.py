"""In the style of the examples of torchvision: convolutions, epochs of a shuffling DataLoader, SGD, a schedule by steps. Prints every loss."""
import random
import sys

import torch
from torch import nn


class Augmented(torch.utils.data.TensorDataset):
    """Draws random numbers, as transforms do: in the program's own process where there are no workers."""

    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return image * (0.9 + 0.2 * random.random()) + 0.1 * torch.randn(1), label


def main():
    torch.manual_seed(1)
    random.seed(1)
    kind = Augmented if "augment" in sys.argv else torch.utils.data.TensorDataset
    data = kind(torch.randn(96, 3, 12, 12), torch.randint(0, 5, (96,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=1 if "workers" in sys.argv else 0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
    seen, steps = 0, int(sys.argv[1])
    while seen < steps:
        for images, labels in loader:
            images.mul_(0.5)                    # in place: the batch is not what it was
            loss = criterion(model(images), labels)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
            schedule.step()
            print("loss", seen, loss.item(), optimizer.param_groups[0]["lr"], flush=True)
            seen += 1
            if seen == steps:
                break


main()
