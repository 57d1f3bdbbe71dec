"""The scheduler of `trueloop.schedules.warmup_stable_decay`, and how a longer run resumes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from trueloop.errors import ScheduleError

SHAPES: dict[str, Callable[[float], float]] = {
    "linear": lambda x: 1 - x,
    "cosine": lambda x: (1 + math.cos(math.pi * x)) / 2,
    "1-sqrt": lambda x: 1 - math.sqrt(x),
}
"""The share of the lr that is left after the share x of the decay: 1 at x = 0, 0 at x = 1."""


class WarmupStableDecay(LRScheduler):
    """Up over `warmup` ticks, flat, and from tick `decay_from` down to `eta_min` at tick `length`.

    Each lr is a function of the tick only, and the state plain data. A state that was saved before
    the decay loads into a scheduler of any length: the curve up to there is the same.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        warmup: int,
        decay_from: int,
        length: int,
        shape: str,
        start_factor: float,
        eta_min: float,
        tick: str,
    ) -> None:
        self.warmup = warmup
        self.decay_from = decay_from
        self.length = length
        self.shape = shape
        self.start_factor = start_factor
        self.eta_min = eta_min
        self.tick = tick
        super().__init__(optimizer)

    def get_lr(self) -> list[Any]:
        """The lr of each parameter group at the tick `last_epoch`."""
        return [self._lr_at(self.last_epoch, peak) for peak in self.base_lrs]

    def _lr_at(self, tick: int, peak: Any) -> Any:
        if tick < self.warmup:
            return peak * (self.start_factor + (1 - self.start_factor) * tick / self.warmup)
        if tick <= self.decay_from:
            return peak
        done = (tick - self.decay_from) / max(1, self.length - self.decay_from)
        return self.eta_min + (peak - self.eta_min) * SHAPES[self.shape](min(done, 1.0))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Stand where the state was taken. Before the decay, what is still to come is of this
        scheduler, and the warm-up of the state; `ScheduleError` where the two have parted."""
        if why := parted(state_dict, vars(self)):
            raise ScheduleError(why)
        to_come = {name: getattr(self, name) for name in _TO_COME}
        super().load_state_dict({**state_dict, **to_come})


def is_state(state: Any) -> bool:
    """Whether it is the state of a `WarmupStableDecay`, as far as its numbers go."""
    numbers = ("last_epoch", "warmup", "decay_from", "length", "eta_min")
    return isinstance(state, Mapping) and all(
        isinstance(state.get(name), (int, float)) for name in numbers
    )


def parted(saved: Mapping[str, Any], planned: Mapping[str, Any]) -> str | None:
    """Why a run planned as `planned` cannot resume from `saved` (the states of two schedulers);
    None if the lr up to there is the same."""
    if all(saved[name] == planned[name] for name in _TO_COME):
        return None
    tick, unit = saved["last_epoch"], planned["tick"]
    if tick > saved["decay_from"]:
        return (
            f"the checkpoint was taken after {unit} {tick}, inside the decay of its schedule "
            f"({unit} {saved['decay_from']} to {saved['length']}), which is not that of this run "
            f"({planned['decay_from']} to {planned['length']}): continue with the length and the "
            f"options that it had, or prolong a checkpoint from before {unit} {saved['decay_from']}"
        )
    if max(tick, saved["warmup"]) > planned["decay_from"]:
        return (
            f"the checkpoint was taken after {unit} {tick} (with a warm-up of {saved['warmup']}), "
            f"and the decay of this run begins at {planned['decay_from']}: make the run longer, or "
            "the decay shorter"
        )
    return None


_TO_COME = ("decay_from", "length", "shape", "eta_min")
