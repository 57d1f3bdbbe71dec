"""Data sets of made-up images: one pattern for each class, moved and with noise."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch.utils.data import Dataset

TRAIN = int(os.environ.get("STAND_IN_IMAGES", "1200"))
TEST = int(os.environ.get("STAND_IN_TEST_IMAGES", "200"))
IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".tif", ".tiff", ".webp")


def made_up(count: int, classes: int, size: int, channels: int, seed: int) -> Any:
    """Images [count, size, size, channels] in uint8 and their classes."""
    patterns = np.random.default_rng(classes * size).random((classes, size, size, channels))
    draw = np.random.default_rng(seed)
    labels = draw.permutation(np.arange(count) % classes)
    moved = [np.roll(patterns[k], draw.integers(-2, 3, 2), (0, 1)) for k in labels]
    images = 0.7 * np.stack(moved) + 0.3 * draw.random((count, size, size, channels))
    return (images * 255).astype(np.uint8), labels


class VisionDataset(Dataset[Any]):
    def __init__(
        self, root: Any = None, transforms: Any = None, transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.root, self.transforms = root, transforms
        self.transform, self.target_transform = transform, target_transform

    def changed(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class _MadeUp(VisionDataset):
    kinds, size, channels = 10, 28, 1
    is_tensor = True

    def __init__(
        self, root: Any = None, train: bool = True, transform: Any = None,
        target_transform: Any = None, download: bool = False, split: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(root, None, transform, target_transform)
        if split is not None:
            train = split != "test"
        self.train = train
        images, labels = made_up(
            TRAIN if train else TEST, self.kinds, self.size, self.channels, 1 if train else 2
        )
        self.classes = [str(k) for k in range(self.kinds)]
        self.class_to_idx = {name: k for k, name in enumerate(self.classes)}
        self.data: Any
        self.targets: Any
        if self.is_tensor:
            import torch

            self.data, self.targets = torch.from_numpy(images[..., 0]), torch.from_numpy(labels)
        else:
            self.data, self.targets = images, labels.tolist()

    train_data = test_data = property(lambda self: self.data)
    train_labels = test_labels = property(lambda self: self.targets)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        image = self.data[index]
        return self.changed(
            Image.fromarray(image.numpy() if self.is_tensor else image), int(self.targets[index])
        )


class MNIST(_MadeUp):
    pass


class FashionMNIST(_MadeUp):
    pass


class CIFAR10(_MadeUp):
    size, channels, is_tensor = 32, 3, False


class CIFAR100(CIFAR10):
    kinds = 100


class SVHN(CIFAR10):
    @property
    def labels(self) -> Any:
        return self.targets


class ImageFolder(VisionDataset):
    """Really reads a folder of one folder for each class."""

    def __init__(
        self, root: Any, transform: Any = None, target_transform: Any = None, loader: Any = None,
        **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(root, None, transform, target_transform)
        self.classes = sorted(each.name for each in os.scandir(root) if each.is_dir())
        self.class_to_idx = {name: k for k, name in enumerate(self.classes)}
        self.samples = [
            (str(path), k)
            for k, name in enumerate(self.classes)
            for path in sorted(Path(root, name).rglob("*"))
            if path.suffix.lower() in IMAGES
        ]
        self.imgs, self.targets = self.samples, [k for _, k in self.samples]
        self.loader = loader or (lambda path: Image.open(path).convert("RGB"))

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        path, target = self.samples[index]
        return self.changed(self.loader(path), target)


DatasetFolder = ImageFolder
