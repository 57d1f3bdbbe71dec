"""How many samples per second a training takes, by itself or in turns with a different one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from trueloop.tune.memory import peak_memory, reset_peak
from trueloop.tune.setup import Setup

_ROUND = 0.25
"""Seconds of one round, of many updates where they are short."""
_FEWEST, _MOST = 3, 15
"""Rounds."""
_SETTLED = 1.3
"""Warm-up ends with the first update that takes at most this many times the one before."""
_MOST_WARM = 12


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """The measurement of a trial."""

    rate: float
    """Samples per second, the median of the rounds."""
    rounds: list[float]
    ratios: list[float] = field(default_factory=list)
    """Of each round's samples per second to those of the base in its turn; empty when measured by
    itself."""
    peak: int = 0
    """Bytes; see `memory.peak_memory`."""
    warm_seconds: float = 0.0
    """The first updates took so long beyond later ones: compiling, most of all."""
    update_seconds: float = 0.0
    samples: float = 0.0
    """Of an update."""
    threads: int = 1
    """CPU threads that it computed on."""


def measure(setup: Setup, seconds: float, base: Callable[[], Setup] | None = None) -> Throughput:
    """Train `setup` for about `seconds` after it has warmed up; with a `base`, in turns with it, so
    that what else the machine does meets both. `base` is made after the memory is read."""
    setup.take_threads()
    reset_peak(setup.device)
    lost, each = warm_up(setup)
    peak = peak_memory(setup.device)
    arms, counts = [setup], [_updates_of_round(each)]
    if base is not None:
        arms.append(base())
        counts.append(_updates_of_round(warm_up(arms[1])[1]))
    rounds: list[list[float]] = [[] for _ in arms]
    samples, began = 0.0, time.monotonic()
    while _has_time(len(rounds[0]), time.monotonic() - began, seconds):
        turns = list(range(len(arms)))
        for k in turns if len(rounds[0]) % 2 == 0 else reversed(turns):  # ABBA: drift cancels
            speed, of_update = _round(arms[k], counts[k])
            rounds[k].append(speed)
            samples = of_update if k == 0 else samples
    return Throughput(
        rate=median(rounds[0]),
        rounds=rounds[0],
        ratios=[] if base is None else [a / b for a, b in zip(*rounds, strict=True)],
        peak=peak,
        warm_seconds=lost,
        update_seconds=each,
        samples=samples,
        threads=setup.threads,
    )


def _updates_of_round(seconds: float) -> int:
    return max(1, round(_ROUND / max(seconds, 1e-9)))


def warm_up(setup: Setup) -> tuple[float, float]:
    """Seconds that the first updates took beyond what settled ones take, and seconds of a settled
    one; the first ones allocate, compile and choose kernels."""
    setup.take_threads()
    first = [_seconds_of_update(setup) for _ in range(setup.warm_updates)]
    last = first[-1]
    for _ in range(_MOST_WARM):
        took = _seconds_of_update(setup)
        settled = took <= _SETTLED * last and last <= _SETTLED * took
        last = took
        if settled:
            break
    return sum(max(0.0, each - last) for each in first), last


def _seconds_of_update(setup: Setup) -> float:
    began = time.monotonic()
    setup.update()
    setup.wait()
    return time.monotonic() - began


def _round(setup: Setup, updates: int) -> tuple[float, float]:
    """Samples per second over so many updates, and the samples of one."""
    setup.take_threads()
    setup.update()  # its threads wake, its caches fill
    setup.wait()
    samples, began = 0, time.monotonic()
    for _ in range(updates):
        samples += int(setup.update().samples)
    setup.wait()
    return samples / (time.monotonic() - began), samples / updates


def _has_time(done: int, spent: float, seconds: float) -> bool:
    return done < _FEWEST or (done < _MOST and spent * (done + 1) / done < seconds)


@dataclass(frozen=True, kw_only=True)
class Gain:
    """How many times as fast, with the half-width of its 95% interval, as a share."""

    factor: float
    noise: float

    @property
    def is_real(self) -> bool:
        """Whether it is faster by more than the noise of the measurement."""
        return self.factor > 1 + self.noise

    @property
    def is_loss(self) -> bool:
        return self.factor < 1 - self.noise


LEAST_NOISE = 0.02
"""The difference of two measurements of the same thing, one after the other, at the best of
times."""


def gain(ratios: list[float]) -> Gain:
    """The median of paired ratios. Its standard error is taken from the median absolute deviation,
    for which one round in a hiccup of the machine counts as any other; that of a median is 1.253
    times that of a mean, and 1.4826 makes a MAD a standard deviation (normal distribution)."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = median(logs)
    deviation = 1.4826 * median([abs(value - middle) for value in logs])
    noise = 1.96 * 1.253 * deviation / math.sqrt(len(logs))
    return Gain(factor=math.exp(middle), noise=max(LEAST_NOISE, math.expm1(noise)))
