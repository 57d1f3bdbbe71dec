"""A race: two ways to train get the same time from the start, and are compared by what they have
learned in it.

More samples per second do not say that a model is trained sooner: a large batch makes fewer
updates of them. The learning rate warms up over the first tenth of the time and then falls linearly
to 0, which is the best that is known of a training whose time is given (Li, Yumer and Ramanan,
"Budgeted training", ICLR 2020).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch

from trueloop.errors import NonFiniteError, OutlierError
from trueloop.evaluation import evaluating
from trueloop.records import LossOutput, batch_samples, resolve_count
from trueloop.tune.range_test import groups_of, set_rate
from trueloop.tune.setup import Setup

_WARM = 0.1
"""Share of the time in which the rate grows."""
_MOST_SAMPLES = 10_000
"""Samples of the validation set to compare by; a larger set would cost more than the race."""


@dataclass(frozen=True, kw_only=True)
class RaceResult:
    """The state of a training after its time."""

    loss: float
    """Mean loss on (the first 10,000 samples of) the validation set; NaN of one that diverged."""
    updates: int
    samples: int
    seconds: float


def race(setup: Setup, seconds: float) -> RaceResult:
    """Train `setup`, which must have no schedule, for so many seconds; what it has come to.

    The clock starts after the first updates, in which a compiled one is compiled: that is paid once
    in a run, and counted elsewhere. Reads the time after each update: on an accelerator every
    one of them waits.
    """
    setup.take_threads()
    groups = groups_of(setup.step)
    _set_share(groups, 0.01)
    updates = setup.warm_updates
    samples = sum(int(setup.update().samples) for _ in range(updates))
    began, spent = time.monotonic(), 0.0
    try:
        while spent < seconds:
            share = spent / seconds
            _set_share(groups, max(0.01, min(share / _WARM, (1 - share) / (1 - _WARM))))
            samples += int(setup.update().samples)
            updates += 1
            setup.wait()
            spent = time.monotonic() - began
        loss = validation_loss(setup)
    except (NonFiniteError, OutlierError):
        loss = math.nan
    return RaceResult(loss=loss, updates=updates, samples=samples, seconds=spent)


def _set_share(groups: list[tuple[dict[str, object], float]], share: float) -> None:
    for group, peak in groups:
        set_rate(group, peak * share)


def validation_loss(setup: Setup) -> float:
    """Mean loss per sample (or token) of the validation set's first 10,000 samples."""
    total = torch.zeros((), dtype=torch.float64)
    count, seen = 0.0, 0
    step = setup.step
    with evaluating(step.model), step.precision.autocast():
        for batch in setup.val.epoch(0):
            output = LossOutput.of(step.loss_fn(step.model, batch))
            samples = batch_samples(batch) or 1
            weight = float(resolve_count(output.count, samples))
            total += output.loss.double().cpu() * weight
            count, seen = count + weight, seen + samples
            if seen >= _MOST_SAMPLES:
                break
    return float(total) / count if count else math.nan
