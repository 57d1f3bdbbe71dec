"""What a workload is: its contenders, what they are measured by, and what is wanted of ours."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Turn = Callable[[], dict[str, float]]
"""One measurement: figures by their names."""
Rounds = Mapping[str, list[dict[str, float]]]
"""Each contender's turns."""

MEMORY = "MB above torch"
"""The figure that each contender's process has at its end: its highest resident memory, less what
it had after `import torch`."""
OURS = "trueloop"
COMPILED = "trueloop, compile=step"


class LeftOutError(Exception):
    """A contender cannot take part; the text says why."""


@dataclass(frozen=True)
class Settings:
    """What a contender's process is told."""

    threads: int
    quick: bool
    """Everything once and in small: no figures to keep."""
    data: Path
    """The folder with the data sets."""
    scratch: Path
    """A folder for whatever the workload's contenders share."""


Make = Callable[[Settings], Turn]


@dataclass(frozen=True)
class Figure:
    """A figure of the turns, as a table shows it."""

    name: str
    shown: str = ""
    """With its unit; empty: the name."""
    digits: int = 1
    lower_is_better: bool = True

    @property
    def title(self) -> str:
        return self.shown or self.name


@dataclass(frozen=True)
class Goal:
    """A ratio of two figures that is wanted to be at least, or at most, a number."""

    text: str
    figure: str
    over: str
    """The contender whose figure is divided."""
    under: str = ""
    """The one whose figure it is divided by; empty: by 1."""
    at_least: float | None = None
    at_most: float | None = None
    under_figure: str = ""
    """The figure of `under`; empty: the same."""
    is_difference: bool = False
    """The two are subtracted, not divided."""

    def measured(self, rounds: Rounds) -> float | None:
        """The median of the rounds' own ratios; None where a contender was left out."""
        if self.over not in rounds or (self.under and self.under not in rounds):
            return None
        values = [turn[self.figure] for turn in rounds[self.over]]
        if self.under:
            name = self.under_figure or self.figure
            under = (turn[name] for turn in rounds[self.under])
            pairs = zip(values, under, strict=False)
            values = [a - b if self.is_difference else a / b for a, b in pairs]
        return statistics.median(values)

    def is_met(self, value: float) -> bool:
        if self.at_least is not None:
            return value >= self.at_least
        assert self.at_most is not None
        return value <= self.at_most

    def limit(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return f"at most {self.at_most:g}"


@dataclass(frozen=True)
class Workload:
    """Contenders that do the same work, by their names."""

    title: str
    contenders: Mapping[str, Make]
    figures: tuple[Figure, ...]
    """The first is the one that ratios are shown of."""
    goals: tuple[Goal, ...] = ()
    beside: str = "by hand"
    """The contender that the others' ratios are to."""
    threads: int = 0
    """For the computation; 0: one for each core."""
    warms_up: bool = True
    """A turn that does not count comes first."""
    in_parent: bool = False
    """The contenders only start processes, and have none of their own."""
    compared: bool = True
    """Whether the contenders do the same, so that ratios say something."""
    few: tuple[str, ...] = ()
    """Contenders that take long, and have two rounds only."""
