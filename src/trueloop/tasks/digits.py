"""Handwritten digits, 8×8 pixels, that come with scikit-learn: images without a download."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from trueloop.errors import ConfigError, MissingDependencyError
from trueloop.run import Figures
from trueloop.tasks.base import Splits, Task
from trueloop.tasks.mistakes import show_mistakes
from trueloop.tasks.random_split import stratified_split
from trueloop.tasks.recipe import Recipe

INK = 16.0
"""Largest value of a pixel in scikit-learn's digits."""


class Digits(Task):
    """scikit-learn's 1,797 handwritten digits (8×8 pixels) and a small convolutional network."""

    random_weights = True
    recipe = Recipe(epochs=20, batch_size=64, lr=3e-3, weight_decay=0.01, schedule="cosine")
    classes = [str(k) for k in range(10)]  # noqa: RUF012 - read only

    def splits(self) -> Splits:
        if self.data is not None:
            raise ConfigError(
                "the digits come with scikit-learn, not from a file: leave out --data"
            )
        images, labels = _load()
        train, val = stratified_split(labels.numpy(), [0.2], self.seed, self.fold)
        facts = {"training images": len(train), "validation images": len(val), "size": "8×8, grey"}
        return Splits(
            train=(images[train], labels[train]), val=(images[val], labels[val]), facts=facts
        )

    def model(self) -> nn.Module:
        return nn.Sequential(
            *_convolution(1, 32),
            *_convolution(32, 32),
            nn.MaxPool2d(2),
            *_convolution(32, 64),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(64 * 2 * 2, 10),
        )

    def example_inputs(self, samples: int) -> tuple[Tensor, ...]:
        return (torch.empty(samples, 1, 8, 8),)

    def pictures(
        self, model: nn.Module, splits: Splits, outputs: Tensor, targets: Tensor, album: Figures
    ) -> None:
        images = splits.val[0]

        def image_of(row: int) -> Tensor:
            image: Tensor = images[row]
            return (255 * (1 - image)).to(torch.uint8)

        show_mistakes(outputs, targets, image_of, self.classes or [], album)


def _load() -> tuple[Tensor, Tensor]:
    """The images, float32 (1797, 1, 8, 8) within [0, 1], and their digits, int64 (1797,)."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingDependencyError(
            "the digits come with scikit-learn, which is not installed: "
            "pip install 'trueloop[sklearn]'"
        ) from None
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / INK).astype(np.float32).reshape(-1, 1, 8, 8)
    return torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64))


def _convolution(inputs: int, outputs: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]
