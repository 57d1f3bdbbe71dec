"""An epoch's batches do not fill the last accumulated update, and its gradients are lost.

## What it does

Finds gradient accumulation where the number of batches per epoch is known and not a multiple of the
accumulation steps, and nothing steps for the remaining batches.

## Why it breaks training

The gradients of the last micro-batches are computed for nothing: the next `zero_grad()` clears
them, or, if gradients are cleared only after a step, they are added to the first update of the next
epoch, which is then too large. A few samples of each epoch never count, or count at old weights.
Results get a little worse and differ from a run with large batches.

## Wrong

```python
for i, (inputs, targets) in enumerate(loader):  # 10 batches
    (criterion(model(inputs), targets) / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Right

```python
for i, (inputs, targets) in enumerate(loader):
    (criterion(model(inputs), targets) / 4).backward()
    if (i + 1) % 4 == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
```

## Sources

- PyTorch, [Automatic Mixed Precision examples, gradient
  accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
- Hugging Face Accelerate, [Gradient
  accumulation](https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation): the
  end of the loader always closes a window.

## How it is detected

The number of accumulation steps and the number of batches (of a loader, or of a tensor that is
`split` into parts) are known, by themselves or by the defaults of command-line options, and do not
divide, the step depends on the loop's own index, or on a count of its turns that is set to zero
before each pass, and no step follows the last iteration before the next `zero_grad()`, the next
`backward()` or the end. A counter that continues over epochs has full updates and is not reported,
and neither is code whose sizes are unknown. In a running program, the interval of the steps and the
end of the data are observed; that the count restarts with each epoch must be observed too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueloop.doctor.model.events import Backward, Ended, LoopLeft, OptimizerStep, ZeroGrad
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import AccumulationWindow, Loop, Optimizer
from trueloop.doctor.rules.shared.step_order import StepRule, clears, inside, micro, named


@dataclass(eq=False)
class Tail:
    """The gradients that a loop has left in an optimizer when it ended."""

    step: OptimizerStep
    """The last of the loop."""
    size: int
    """Of the window, in micro-batches."""
    batches: int
    watched: bool
    """In a program that runs."""
    by_default: bool = False
    """In a run without options."""
    carried: bool = False
    """The next window has begun on top of it."""


class AccumulationTailLost(StepRule):
    code = "TL506"

    def __init__(self) -> None:
        super().__init__()
        self._open: list[Tail] = []
        self._sizes: dict[tuple[Optimizer, Location], int] = {}
        """The rhythm of each step, where one was seen."""
        self._restarts: set[Location] = set()
        """Steps whose count restarts with a loop."""

    def on_loop_left(self, event: LoopLeft) -> None:
        for optimizer in self.timeline.optimizers:
            step = self.last_step(optimizer)
            if step is None:
                continue
            written = _written(step, event.loop)
            if written is None and (optimizer, step.place) not in self._sizes:
                continue
            left = [
                each
                for each in self.window(optimizer)
                if isinstance(each, Backward) and self.feeds(each, optimizer)
            ]
            if not left or self._take_turns(optimizer, left[-1]):
                continue
            tail = self._watched(step, event.loop, left) or written
            if tail is not None:
                self._open.append(tail)

    def _take_turns(self, optimizer: Optimizer, backward: Backward) -> bool:
        """A different optimizer has stepped on these gradients."""
        return any(
            isinstance(event, OptimizerStep)
            and event.optimizer is not optimizer
            and event.serial > backward.serial
            and self.feeds(backward, event.optimizer)
            for event in self.window(optimizer)
        )

    def _watched(self, step: OptimizerStep, loop: Loop, left: list[Backward]) -> Tail | None:
        """The tail of a loop of a program that runs, which was seen to its end."""
        size = self._sizes.get((step.optimizer, step.place))
        turns = {micro(each) for each in left}
        last = micro(left[-1])
        if size is None or last is None or last.loop is not loop or None in turns:
            return None
        if not all(inside(each, last) for each in (step, *left)):
            return None
        batches = _batches(loop)
        to_its_end = loop.exhausted or last.index + 1 == batches
        if batches is None or not to_its_end or batches % size != len(turns):
            return None
        return Tail(step, size, batches, watched=True)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        turn, size = micro(event), self.every(event)
        if size is not None:
            self._sizes[event.optimizer, event.place] = size
        for tail in [each for each in self._open if each.step.optimizer is event.optimizer]:
            if tail.carried and event.place == tail.step.place and turn is not None:
                if turn.index == tail.size - 1:
                    self._restarts.add(event.place)
                    self._close([tail], "added to the next update")
            else:
                self.refute(tail.step.place)
        self._open = [each for each in self._open if each.step.optimizer is not event.optimizer]

    def on_zero_grad(self, event: ZeroGrad) -> None:
        lost = [each for each in self._open if clears(event, each.step.optimizer)]
        self._close(lost, "erased", [(event.place, "erases what is left")])

    def on_backward(self, event: Backward) -> None:
        carried = [each for each in self._open if self.feeds(event, each.step.optimizer)]
        for tail in carried:
            tail.carried = True
        self._close([each for each in carried if not each.watched], "added to the next update")

    def on_ended(self, event: Ended) -> None:
        self._close(
            [each for each in self._open if not each.watched or each.step.place in self._restarts],
            "dropped",
        )

    def _close(
        self, lost: list[Tail], fate: str, related: Sequence[tuple[Location, str]] = ()
    ) -> None:
        for tail in lost:
            self._open.remove(tail)
            size, batches = tail.size, tail.batches
            where = " (by the options' defaults)" if tail.by_default else ""
            self.report(
                tail.step.place,
                f"{batches} batches{where} cannot be divided into updates of {size}"
                f" micro-batches: the gradients of the last {batches % size} are {fate},"
                f" because {named(tail.step.optimizer, tail.step.spelled)} steps only"
                f" after {size}.",
                related=[*related],
                fix="Step at the last batch too: `or i + 1 == len(loader)`.",
            )


def _written(step: OptimizerStep, loop: Loop) -> Tail | None:
    window = _window(step, loop)
    if window is None:
        return None
    batches, size = _batches(loop), window.size
    by_default = not (isinstance(batches, int) and isinstance(size, int))
    if by_default:
        size = window.by_default
        if loop.loader is not None:
            batches = loop.loader.length_by_default
        elif loop.parts is not None and isinstance(loop.parts[1], int):
            batches = loop.parts[1]
    if not (isinstance(batches, int) and isinstance(size, int)):
        return None
    if size < 2 or batches % size == 0:
        return None
    return Tail(step, size, batches, watched=False, by_default=by_default)


def _batches(loop: Loop) -> int | None:
    """How many turns the loop really makes, where that is a number."""
    length = loop.parts[0] if loop.parts is not None else None
    length = loop.loader.length if loop.loader is not None else length
    if length is None and not loop.simulated:
        length = loop.turns
    return length if isinstance(length, int) else None


def _window(step: OptimizerStep, loop: Loop) -> AccumulationWindow | None:
    """The window whose end the step waits for, counted by the loop's own index."""
    if len(step.windows) != 1:
        return None
    turn = next((each for each in step.turns if each.loop is loop), None)
    window = step.windows[0]
    if turn is None or turn.index != 1 or window.loop is not loop:
        return None
    return window
