"""The batches of an epoch do not fill the last accumulation window, and its gradients are lost.

## What it does

Finds gradient accumulation where the number of batches in an epoch is known, is no multiple of
the window, and nothing steps for the batches that are left over.

## Why it breaks training

The micro-batches after the last full window have computed gradients for nothing: the next
clearing erases them, or, if gradients are cleared only after a step, they spill into the first
window of the next epoch, which then has too many. A few samples of each epoch never count, or
count at stale weights. It shows in nothing but a little worse results, and in runs that differ
from their single-batch twin.

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

The size of the window and the number of batches of the loader must both be known numbers that do
not divide, the step must hang on the loop's own index, and after the loop's last turn no step
follows before the next clearing, the next `backward` or the end. A counter that runs on across
epochs has whole windows and is silent, and so is everything whose sizes are not written in the
source.
"""

from __future__ import annotations

from trueloop.doctor.events import (
    Backward,
    Ended,
    LoopLeft,
    Step,
    ZeroGrad,
)
from trueloop.doctor.rules.gradients import StepRule, clears, named
from trueloop.doctor.things import Loop


class AccumulationTailLost(StepRule):
    code = "TL506"

    def __init__(self) -> None:
        super().__init__()
        self._open: list[tuple[Step, int, int]] = []
        """Steps whose loop has ended with gradients left over; window, batches."""

    def on_loop_left(self, event: LoopLeft) -> None:
        batches = _batches(event.loop)
        if batches is None:
            return
        for optimizer in self.used:
            step = self.last_step(optimizer)
            size = _window(step, event.loop)
            left = [each for each in self.window(optimizer) if isinstance(each, Backward)]
            if step is None or size is None or batches % size == 0:
                continue
            if any(self.feeds(each, optimizer) for each in left):
                self._open.append((step, size, batches))

    def on_step(self, event: Step) -> None:
        for step, _, _ in self._open:
            if step.optimizer is event.optimizer:
                self.refute(step.place)
        self._open = [each for each in self._open if each[0].optimizer is not event.optimizer]
        super().on_step(event)

    def on_zero_grad(self, event: ZeroGrad) -> None:
        self._close([each for each in self._open if clears(event, each[0].optimizer)], "erased")
        super().on_zero_grad(event)

    def on_backward(self, event: Backward) -> None:
        carried = [each for each in self._open if self.feeds(event, each[0].optimizer)]
        self._close(carried, "carried into the next window")
        super().on_backward(event)

    def on_ended(self, event: Ended) -> None:
        self._close(list(self._open), "dropped")

    def _close(self, lost: list[tuple[Step, int, int]], fate: str) -> None:
        for step, size, batches in lost:
            self._open.remove((step, size, batches))
            self.report(
                step.place,
                f"{batches} batches do not fill windows of {size}: the gradients of the last"
                f" {batches % size} are {fate}, because {named(step.optimizer, step.spelled)}"
                " steps only for full windows.",
                fix="Step for the last batch too: `or i + 1 == len(loader)`.",
            )


def _batches(loop: Loop) -> int | None:
    """How many turns the loop really makes, where that is a number."""
    length = loop.loader.length if loop.loader is not None else None
    return length if isinstance(length, int) else None


def _window(step: Step | None, loop: Loop) -> int | None:
    """The size of the window whose end the step waits for, counted by the loop's own index."""
    if step is None or len(step.windows) != 1:
        return None
    turn = next((each for each in step.turns if each.loop is loop), None)
    window = step.windows[0]
    if turn is None or turn.index != 1 or window.loop is not loop:
        return None
    return window.size if isinstance(window.size, int) and window.size > 1 else None
