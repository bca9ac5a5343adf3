"""In the style of torchvision's references: train_one_epoch over a DataLoader with workers, evaluate after it, a scheduler, a checkpoint in memory."""
import io
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item()


def train_one_epoch(model, criterion, optimizer, loader, clock):
    model.train()
    total = 0.0
    for image, target in loader:
        output = model(image)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        clock.append(time.perf_counter())
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def evaluate(model, loader):
    model.eval()
    with torch.inference_mode():
        return sum(accuracy(model(image), target) for image, target in loader) / len(loader)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    workers = int(sys.argv[1])
    data = TensorDataset(torch.randn(320, 3, 16, 16), torch.randint(0, 10, (320,)))
    make = torch.Generator().manual_seed(1)
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=workers, generator=make)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    clock = []
    for epoch in range(2):
        loss = train_one_epoch(model, nn.CrossEntropyLoss(), optimizer, loader, clock)
        scheduler.step()
        print(f"epoch {epoch} loss {loss:.6f} accuracy {evaluate(model, loader):.4f}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
    if os.environ.get("CLOCK"):
        open(os.environ["CLOCK"], "w").write(" ".join(map(repr, clock)))


if __name__ == "__main__":
    main()
