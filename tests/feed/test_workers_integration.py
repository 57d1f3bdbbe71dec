"""Must show: the same weights, bitwise, with 0, 1 and 4 workers and random augmentation."""

from __future__ import annotations

import os
import random
import signal

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset

from trueloop.feed import Feed


class Augmented(Dataset[tuple[torch.Tensor, int]]):
    """Small pictures of a bright quarter; shifted, flipped and noised by three generators."""

    def __len__(self) -> int:
        return 150

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        label = index % 4
        picture = torch.zeros(1, 8, 8)
        picture[0, label // 2 * 4 :][:4, label % 2 * 4 :][:, :4] = 1
        shifted = torch.roll(picture, random.randint(-1, 1), dims=2)
        noise = torch.from_numpy(np.random.normal(size=(1, 8, 8)).astype(np.float32))
        return shifted + 0.1 * noise + 0.1 * torch.randn(1, 8, 8), label


def train(workers: int, persistent: bool = True, epochs: int = 2) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(144, 4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    feed = Feed(
        Augmented(), 16, shuffle=True, seed=5, workers=workers, persistent_workers=persistent
    )
    for epoch in range(epochs):
        for inputs, targets in feed.epoch(epoch):
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return model.state_dict()


@pytest.mark.parametrize("persistent", [True, False])
def test_weights_do_not_depend_on_the_workers(persistent: bool) -> None:
    alone = train(0)
    for workers in (1, 4):
        weights = train(workers, persistent)
        for name, value in alone.items():
            assert torch.equal(value, weights[name]), (workers, name)


def test_the_augmentation_matters() -> None:
    # Otherwise the test above would compare nothing.
    feed = Feed(Augmented(), 150)
    first, second = next(feed.epoch(0))[0], next(feed.epoch(1))[0]
    assert not torch.equal(first, second)


class WorkersOwnPids(Dataset[int]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        return os.getpid()


def test_an_interrupt_of_the_terminal_leaves_the_workers_to_the_parent() -> None:
    """Ctrl-C goes to every process of the group; only the one that trains may act on it."""
    feed = Feed(WorkersOwnPids(), 2, workers=2)
    batches = feed.epoch(0)
    first = next(batches)
    for pid in set(first.tolist()):
        os.kill(int(pid), signal.SIGINT)
    rest = list(batches)
    assert len(rest) == len(feed) - 1
