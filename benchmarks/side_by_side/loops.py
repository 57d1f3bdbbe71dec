"""The same job by several loops: by hand, by `Step` and `Feed`, and the bare computation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

Epochs = Callable[[int], float]
"""Trains so many epochs; returns their seconds."""


@dataclass(frozen=True)
class Job:
    """A classifier of rows of numbers: layers with ReLU between them, Adam, a clipped norm."""

    sizes: tuple[int, ...]
    """Inputs, hidden widths, classes."""
    samples: int
    batch: int
    lr: float = 1e-3
    clip: float = 1.0

    @property
    def batches(self) -> int:
        return -(-self.samples // self.batch)

    def data(self) -> tuple[Tensor, Tensor]:
        """Inputs (N, inputs) float32 and classes (N,) int64, the same ones each time."""
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(self.samples, self.sizes[0], generator=generator)
        return x, torch.randint(self.sizes[-1], (self.samples,), generator=generator)

    def model(self) -> nn.Sequential:
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for width, following in zip(self.sizes, self.sizes[1:], strict=False):
            layers += [nn.Linear(width, following), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def loader(self) -> DataLoader[tuple[Tensor, ...]]:
        return DataLoader(TensorDataset(*self.data()), batch_size=self.batch, shuffle=True)


def by_hand(job: Job, *, fused: bool | None = None, compiled: bool = False) -> Epochs:
    """DataLoader(TensorDataset), Adam, clip_grad_norm_ and zero_grad, as most people write it."""
    model, criterion, batches = job.model(), nn.CrossEntropyLoss(), job.loader()
    optimizer = torch.optim.Adam(model.parameters(), lr=job.lr, fused=fused)
    # A graph for each of the two batch sizes is faster than one for any size.
    forward = torch.compile(model, dynamic=False) if compiled else model

    def epoch(number: int) -> None:
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = criterion(forward(inputs), targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), job.clip)
            optimizer.step()

    return timed(epoch)


def ours(job: Job, **options: Any) -> Epochs:
    """`Step` and `Feed`, with `options` of the step."""
    import trueloop

    model = job.model()
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, job.lr),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=job.clip,
        **options,
    )
    train = trueloop.Feed(job.data(), job.batch, shuffle=True)

    def epoch(number: int) -> None:
        for batch in train.epoch(number):
            step(batch)
        step.end_epoch()

    return timed(epoch)


def floor(job: Job) -> Epochs:
    """Forward, backward and a fused Adam step on one batch: no data, no clip, no record."""
    model, criterion = job.model(), nn.CrossEntropyLoss()
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=job.lr, fused=True)
    inputs, targets = (part[: job.batch].clone() for part in job.data())

    def epoch(number: int) -> None:
        for _ in range(job.batches):
            criterion(model(inputs), targets).backward()
            optimizer.step()
            for parameter in parameters:
                parameter.grad = None

    return timed(epoch)


def timed(epoch: Callable[[int], None]) -> Epochs:
    done = 0

    def epochs(count: int) -> float:
        nonlocal done
        started = time.perf_counter()
        for number in range(done, done + count):
            epoch(number)
        done += count
        return time.perf_counter() - started

    return epochs
