"""Modes are known through the updates that nobody looks at: an epoch may be longer than a sample.

The functions that train here have no `assert`: pytest makes one look at all variables, and then the
watcher does not read them.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from trueloop.doctor.live.sampling_schedule import AFTER, FIRST
from trueloop.doctor.live.watcher import Watcher

BATCHES = FIRST + 10
EPOCHS = 12
"""A mode that is switched at one place is looked at the first eight times."""


def train(wakes: range, sleeps: range) -> None:
    """Epochs longer than the first sample, with validations longer than the samples after them;
    the model wakes before the epochs of `wakes`, and is put to sleep after those of `sleeps`."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(2 * BATCHES, 4), torch.randint(3, (2 * BATCHES,)))
    training = DataLoader(data, 2, shuffle=True)
    validation = DataLoader(data, 2 * BATCHES // (3 * AFTER))
    for epoch in range(EPOCHS):
        if epoch in wakes:
            model.train()
        for x, y in training:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        if epoch in sleeps:
            model.eval()
        with torch.no_grad():
            for x, y in validation:
                F.cross_entropy(model(x), y)


@pytest.mark.parametrize(
    ("wakes", "sleeps", "expected"),
    [
        pytest.param(range(EPOCHS), range(EPOCHS), False, id="wakes-in-each-epoch"),
        pytest.param(range(1), range(EPOCHS), True, id="wakes-before-the-first"),
        pytest.param(range(1), range(1), True, id="is-put-to-sleep-once"),
    ],
)
def test_long_epochs(watcher: Watcher, wakes: range, sleeps: range, expected: bool) -> None:
    train(wakes, sleeps)
    found = [each for each in watcher.findings() if each.code == "TL201"]
    assert bool(found) is expected
