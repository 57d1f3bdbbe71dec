"""A residual network and VGG's features, small: what scripts load as pretrained."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class _Block(nn.Module):
    def __init__(self, wide: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(wide, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or wide != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(wide, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + kept)


class ResNet(nn.Module):
    def __init__(self, num_classes: int = 1000, width: int = 8) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(_Block(width, width, 1))
        self.layer2 = nn.Sequential(_Block(width, 2 * width, 2))
        self.layer3 = nn.Sequential(_Block(2 * width, 4 * width, 2))
        self.layer4 = nn.Sequential(_Block(4 * width, 8 * width, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        out: torch.Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return out


class VGG(nn.Module):
    def __init__(self, widths: tuple[Any, ...], num_classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        wide = 3
        for width in widths:
            if width == "M":
                layers.append(nn.MaxPool2d(2, 2))
            else:
                layers += [nn.Conv2d(wide, width // 8, 3, 1, 1), nn.ReLU(inplace=True)]
                wide = width // 8
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(wide * 49, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, num_classes)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))
        return out


def _resnet(pretrained: Any = None, progress: bool = True, weights: Any = None, **options: Any
) -> ResNet:  # fmt: skip
    return ResNet(**{key: value for key, value in options.items() if key == "num_classes"})


resnet18 = resnet34 = resnet50 = resnet101 = resnet152 = _resnet
_WIDTHS = (64, 64, "M", 128, 128, "M", 256, 256, 256, 256, "M", 512, 512, 512, 512, "M",
           512, 512, 512, 512, "M")  # fmt: skip


def vgg19(pretrained: Any = None, progress: bool = True, weights: Any = None, **_: Any) -> VGG:
    return VGG(_WIDTHS)


vgg16 = vgg19
