"""In the style of the examples of torchvision: convolutions, epochs of a shuffling DataLoader, SGD, a schedule by steps. Prints every loss."""
import sys

import torch
from torch import nn


def main():
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(96, 3, 12, 12), torch.randint(0, 5, (96,)))
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
