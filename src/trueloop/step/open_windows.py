"""Where an accumulation window ends, and windows that are open where they should not be."""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import Any
from weakref import WeakSet

from torch import Tensor, nn
from torch.utils._pytree import tree_map

from trueloop.step.accumulate import MicroBatchWindow
from trueloop.step.base import StepBase

open_windows: WeakSet[StepBase] = WeakSet()
"""Steps that may have an open window: what `warn_if_accumulating` looks through."""


def warn_if_accumulating(model: nn.Module) -> None:
    """Warn once if a step has gradients for this model that no update has applied yet."""
    for step in tuple(open_windows):
        if not step._window.is_open:
            open_windows.discard(step)
        elif not {id(p) for p in model.parameters()}.isdisjoint(
            id(p) for p in step._gradients.parameters
        ):
            warn_open_window(step, "the model is evaluated without its update", stacklevel=5)


def warn_open_window(step: StepBase, what: str, stacklevel: int = 4) -> None:
    """Warn once that a window is still open where it should have been closed."""
    window = step._window
    step._warn_once(
        "window",
        f"an accumulation window is open, {window.micro_batches} of {window.size} micro-batches"
        f": {what}. Call step.plan(epochs=…, batches=…) before the first batch, or "
        "step(batch, last=True) at an epoch's last batch, or step.flush() after it",
        stacklevel,
    )


def watched(step: StepBase, window: MicroBatchWindow) -> MicroBatchWindow:
    """The step's window: a warning reports it if the step, or the process, ends while it is
    open."""
    if window.size > 1:
        weakref.finalize(step, _warn_of_lost, window)
    return window


def _warn_of_lost(window: MicroBatchWindow) -> None:
    # After an exception that ended the program the open window is not the news.
    if window.micro_batches <= window.kept or getattr(sys, "last_value", None) is not None:
        return
    what = (
        f"a Step has ended with an accumulation window open, {window.micro_batches} of "
        f"{window.size} micro-batches, whose gradients were never applied. Call step.flush() "
        "after the last batch, or step.plan(epochs=…, batches=…) before the first"
    )
    try:
        warnings.warn(what, UserWarning, stacklevel=1)
    except UserWarning:  # nobody could catch it here, perhaps in the garbage collector
        print(f"trueloop: warning: {what}", file=sys.stderr)


def leave_open(step: StepBase) -> None:
    """A window that is open now belongs to a `fit` that ends early: the next one may resume it."""
    step._window.kept = step._window.micro_batches


def ends_epoch(step: StepBase) -> bool:
    """Whether the batch just taken is the last of an epoch, as far as `Step.plan` says."""
    batches = None if step._plan is None else step._plan.batches
    if batches is None:
        return False
    if step.batch == batches + 1:
        step._warn_once(
            "epoch",
            f"batch {step.batch} of an epoch that step.plan(...) says has {batches}: call "
            "step.end_epoch() after each epoch (epoch and metric schedules tick there), or "
            "plan the number of batches that the epoch has",
        )
    return step.batch % batches == 0


def detached(outputs: Any) -> Any:
    """`outputs` with every tensor in it detached from its graph."""
    return tree_map(lambda part: part.detach() if isinstance(part, Tensor) else part, outputs)
