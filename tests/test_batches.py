"""`trueloop.batches`: the loop of N updates or epochs, against the same loop by hand."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import trueloop
from trueloop import schedules
from trueloop.errors import ConfigError

DATA = torch.arange(70.0).reshape(10, 7) / 70, torch.arange(10.0)[:, None] / 10


def made(accumulate: int = 1) -> tuple[trueloop.Step, trueloop.Feed]:
    torch.manual_seed(0)
    model = nn.Linear(7, 1)
    step = trueloop.Step(
        model,
        torch.optim.Adam(model.parameters(), lr=0.1),
        trueloop.supervised(nn.MSELoss()),
        schedule=schedules.cosine(),
        accumulate=accumulate,
    )
    return step, trueloop.Feed(DATA, 3, shuffle=True, seed=1)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("updates", [1, 4, 7, 8])
def test_the_loop_of_updates_is_that_by_hand(updates: int, accumulate: int) -> None:
    by_hand, train = made(accumulate)
    by_hand.plan(updates=updates, batches=len(train))
    while by_hand.updates < updates:
        for batch in train.epoch(by_hand.epoch):
            by_hand(batch)
            if by_hand.updates == updates:
                break
        else:
            by_hand.end_epoch()
    step, train = made(accumulate)
    for batch in trueloop.batches(step, train, updates=updates):
        step(batch)
    assert (step.epoch, step.batch, step.updates) == (by_hand.epoch, by_hand.batch, updates)
    assert torch.equal(step.model.weight, by_hand.model.weight)
    assert list(trueloop.batches(step, train, updates=updates)) == []


def test_a_loop_of_epochs_ends_each_of_them() -> None:
    step, train = made()
    places = []
    for batch in trueloop.batches(step, train, epochs=3):
        places.append((step.epoch, step.batch))
        step(batch)
    assert places == [(epoch, k) for epoch in range(3) for k in range(4)]
    assert (step.epoch, step.batch, step.updates) == (3, 0, 12)


@pytest.mark.parametrize("stop", [2, 4, 5])
def test_a_resumed_loop_is_the_same_run(stop: int) -> None:
    whole, train = made()
    for batch in trueloop.batches(whole, train, updates=9):
        whole(batch)
    first, train = made()
    for batch in trueloop.batches(first, train, updates=9):
        first(batch)
        if first.updates == stop:
            break
    saved = copy.deepcopy((first.state_dict(), first.model.state_dict(), train.state_dict()))
    second, train = made()
    rest = trueloop.batches(second, train, updates=9)
    second.model.load_state_dict(saved[1])
    second.load_state_dict(saved[0])
    train.load_state_dict(saved[2])
    for batch in rest:
        second(batch)
    assert torch.equal(second.model.weight, whole.model.weight)
    assert torch.equal(second.model.bias, whole.model.bias)


def test_mistakes() -> None:
    step, train = made()
    for given, said in (({}, "is not said"), ({"epochs": 1, "updates": 1}, "write one of them")):
        with pytest.raises(ConfigError, match=said):
            trueloop.batches(step, train, **given)
    with pytest.raises(ConfigError, match="takes a Feed, and this is a tuple"):
        trueloop.batches(step, DATA, epochs=1)  # type: ignore[arg-type]
    found = trueloop.batches(step, train, epochs=1)
    next(found)
    with pytest.raises(ConfigError, match="the step did not get the batch"):
        next(found)
