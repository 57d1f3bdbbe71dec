"""The way of one batch through `fit`: which files and functions of ours it passes through.

    python tests/one_batch.py        # prints them, in order

The run has tensors, Adam, a cosine, clipping and one sink. Looked at is the third batch of its
second epoch: from the loop asking for it to the sink having its record, and in `turn` on to the
loop asking for the next one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

import trueloop

SOURCE = f"{Path(trueloop.__file__).parent}/"


class Function(NamedTuple):
    """A function of ours, by its file and its name there."""

    file: str
    name: str


ASKED = Function("feed/epoch.py", "Epoch.__next__")


class Trace:
    """Notes each call of a function of ours, while `sys.setprofile` has it."""

    def __init__(self) -> None:
        self.calls: list[Function] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            found = function_of(frame.f_code)
            if found == ASKED:
                self.calls.append(asking(frame))
            self.calls.append(found)


def function_of(code: CodeType) -> Function:
    return Function(code.co_filename.removeprefix(SOURCE), code.co_qualname)


def asking(frame: FrameType) -> Function:
    """The function of the loop's own that waits for what `frame` does."""
    while not (found := function_of(frame.f_code)).file.startswith("loop/"):
        assert frame.f_back is not None
        frame = frame.f_back
    return found


def files(functions: Iterable[Function]) -> list[str]:
    """The files of ours, each once, in the order in which they are entered."""
    return list(dict.fromkeys(function.file for function in functions))


def loss_fn(model: nn.Module, batch: Any) -> torch.Tensor:
    inputs, targets = batch
    return functional.cross_entropy(model(inputs), targets)


def one_batch(
    loss: Callable[[nn.Module, Any], Any] = loss_fn, *, turn: bool = False
) -> list[Function]:
    """The functions of ours that the batch passes through, each once, in order, after the one
    that asks for it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    train = trueloop.Feed((torch.randn(64, 4), torch.randint(2, (64,))), 8, shuffle=True)
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model),
        loss,
        schedule=trueloop.schedules.cosine(),
        clip_norm=1.0,
    )
    trace = Trace()

    def sink(record: Any) -> None:
        place = record.epoch, getattr(record, "batch", None)
        if place == (1, 1):
            sys.setprofile(trace)
        elif place == (1, 3 if turn else 2):
            sys.setprofile(None)

    trueloop.fit(step, train, epochs=2, sinks=[sink], progress=False)
    first, *others = [k - 1 for k, call in enumerate(trace.calls) if call == ASKED]
    end = others[0] if turn else len(trace.calls)
    return list(dict.fromkeys(trace.calls[first:end]))


def main() -> None:
    for title, turn in (("to the sink", False), ("a whole turn", True)):
        found = one_batch(turn=turn)
        print(f"{title}: {len(files(found))} files, {len(found)} functions")
        for function in found:
            print("   ", *function)


if __name__ == "__main__":
    main()
