"""ResNet-50 on synthetic images of 224 × 224 in bf16 and channels_last: images per second.

He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016, with the stride
in the 3 × 3 convolution, as is usual since.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from torch import Tensor, nn

import trueloop
from gpu.turns import WAYS, Update, median_ratio, seconds_each

BLOCKS = (3, 4, 6, 3)


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.main = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.main(x) + self.skip(x))


def resnet50(classes: int = 1000) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    inputs = 64
    for stage, count in enumerate(BLOCKS):
        width = 64 << stage
        for number in range(count):
            layers.append(Bottleneck(inputs, width, 2 if stage and not number else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def batch(device: torch.device, quick: bool) -> tuple[Tensor, Tensor]:
    samples, side = (2, 32) if quick else (128, 224)
    images = torch.randn(samples, 3, side, side, device=device)
    labels = torch.randint(1000, (samples,), device=device)
    return images.to(memory_format=torch.channels_last), labels


def make(device: torch.device) -> nn.Module:
    torch.manual_seed(0)
    return resnet50().to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def ours(device: torch.device, quick: bool, options: dict[str, Any]) -> Update:
    model, one = make(device), batch(device, quick)
    optimizer = trueloop.optimizers.sgd(model, 0.1, weight_decay=1e-4)
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    step = trueloop.Step(model, optimizer, loss_fn, precision="bf16", **options)
    return lambda: step(one)


def by_hand(device: torch.device, quick: bool, *, compiled: bool) -> Update:
    model, (images, labels) = make(device), batch(device, quick)
    optimizer = trueloop.optimizers.sgd(model, 0.1, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    forward: Any = torch.compile(model) if compiled else model

    def update() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = criterion(forward(images), labels)
        loss.backward()
        optimizer.step()

    return update


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    ways = {"trueloop": {}} if quick else WAYS
    updates = {name: ours(device, quick, options) for name, options in ways.items()}
    updates["by hand"] = by_hand(device, quick, compiled=False)
    if not quick:
        updates["by hand, torch.compile(model)"] = by_hand(device, quick, compiled=True)
    count, rounds, warm = (1, 1, 1) if quick else (10, 5, 5)
    found = seconds_each(updates, device, count=count, rounds=rounds, warm=warm)
    samples = len(batch(device, quick)[1])
    return [
        {
            "loop": name,
            "images per second": round(samples / statistics.median(values), 1),
            "speed, by hand = 1": round(median_ratio(found, "by hand", name), 3),
        }
        for name, values in found.items()
    ]
