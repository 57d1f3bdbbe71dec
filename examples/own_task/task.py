"""A task of one's own: how far a pendulum swings out, learnt from noisy measurements.

    trueloop train examples/own_task/task.py:Pendulum --epochs 30 --noise 0.05

A task says what the data are and which model learns them. Loss, metrics, checkpoints, progress
and report come with `kind`; each field of `Options` and of the recipe is an option of the command.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trueloop.errors import ConfigError
from trueloop.tasks import Recipe, Splits, Task


class Pendulum(Task):
    """The angle of a damped pendulum, from the time and the damping."""

    kind = "regression"  # or multiclass, binary, multilabel: it chooses the loss and the metrics
    recipe = Recipe(epochs=60, batch_size=64, lr=3e-3, schedule="warmup_cosine")

    @dataclass(kw_only=True)
    class Options:
        """Options of this task alone."""

        samples: int = 4000
        """Measurements, of which a quarter is for validation."""
        noise: float = 0.02
        """Standard deviation of the noise of the training measurements, in radians."""
        width: int = 64
        """Units of each hidden layer."""

    options: Options

    def splits(self) -> Splits:
        """Read or make the data. Whatever is drawn comes from `self.seed` and nothing else."""
        if self.options.samples < 100:
            raise ConfigError("--samples must be 100 or more: write --samples 4000")
        generator = torch.Generator().manual_seed(self.seed)
        inputs = torch.rand(self.options.samples, 2, generator=generator)
        targets = angle(inputs)
        train = self.options.samples * 3 // 4
        noise = self.options.noise * torch.randn(train, generator=generator)
        return Splits(
            # Tensors, numpy arrays or any map-style Dataset that yields (inputs, targets).
            train=(inputs[:train], targets[:train] + noise),
            val=(inputs[train:], targets[train:]),
            facts={"training samples": train, "noise": self.options.noise},
        )

    def model(self) -> nn.Module:
        width = self.options.width
        return nn.Sequential(
            nn.Linear(2, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
            nn.Flatten(0),  # (N, 1) to (N,), the shape of the targets
        )


def angle(inputs: Tensor) -> Tensor:
    """Radians, (N,): one at first, then one swing in the unit of time; column 1 is the damping."""
    time, damping = inputs.unbind(dim=1)
    return torch.exp(-3 * damping * time) * torch.cos(2 * math.pi * time)
