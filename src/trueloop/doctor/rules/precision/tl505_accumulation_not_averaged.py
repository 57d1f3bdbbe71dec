"""Losses of micro-batches are means, and are accumulated without being divided.

## What it does

Finds gradient accumulation (a step every N micro-batches) over losses with `reduction="mean"` that
are not divided by N.

## Why it breaks training

The gradients of N micro-batches add up: the update is N times the size that one batch of the same
samples would give. With SGD this multiplies the learning rate by N; clipping is active N times as
often; weight decay is relatively N times too weak. Adam divides the factor away: what remains there
is what clipping and the `weight_decay` of `Adam` (not of `AdamW`) do with it. Changing N, which
should change nothing, changes the training.

## Wrong

```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets)
    loss.backward()
    if (i + 1) % N == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Right

```python
for i, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / N
    loss.backward()
    if (i + 1) % N == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Sources

- PyTorch, [Automatic Mixed Precision examples, gradient
  accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation):
  "loss = loss / iters_to_accumulate".
- Hugging Face, [Fixing gradient accumulation](https://huggingface.co/blog/gradient_accumulation),
  2024: what the division must be when micro-batches differ in size.

## How it is detected

A step that certainly runs every N iterations of its loop, or that comes after a `range` loop of N
micro-batches, follows at least two `backward()` calls from the same line, in different iterations,
without `zero_grad()` in between, and each loss is certainly a mean that nothing has divided or
multiplied. In such a loop each micro-batch must be fetched there (`next(batches)`, `get_batch()`),
or the loop takes the next N of a stream (`islice(batches, N)`, `zip(range(N), batches)`), or goes
through a list of the next N that `itertools.batched` or a generator of the program's own has made.
A `compute_loss` of transformers' Trainer, or a `compute_loss_func`, is judged with the Trainer's
loop: with a model that takes `num_items_in_batch`, or a `compute_loss_func`, the Trainer does not
divide, and a mean that leaves that number unused is N times too large. In a running program, the
step must come at the same interval twice. Not reported: `reduction="sum"`, losses weighted by
tokens, gradients divided afterwards, a `backward` that is given a weight, several losses of one
batch or one per task, and an unknown reduction. A smooth maximum that is divided by its own slope
(`softplus(8 * z).mean() / 8`) is not averaged by it, nor is the average of the losses of one batch
(`(first + second) / 2`), unless it has as many of them as the update has micro-batches. It is
advice where N is an option whose default is 1.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Event,
    ModelForward,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.things import Optimizer
from trueloop.doctor.rules.shared.evidence import ignores_gradient_scale
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    accumulates_by_option,
    clears,
    inside,
    is_edit,
    may_change_gradients,
    micro,
    named,
)
from trueloop.doctor.rules.shared.symbolic import spelled


class AccumulationNotAveraged(StepRule):
    code = "TL505"

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        fed = self._fed(event, self.window(event.optimizer))
        if not fed:
            return
        size = self._size(event)
        if self._divides_by_window(event, fed):
            return
        if size and self._summed(event, fed):
            self._report(event, fed[-1], size)
        elif counted := self._of_inner_loop(event, fed):
            self._report(event, fed[-1], counted)

    def _size(self, step: OptimizerStep) -> str:
        """Of the window that the step closes, as it is written or counted; empty without one."""
        if step.windows:
            return next((spelled(w.size) for w in step.windows if w.size), "N")
        return str(self.every(step) or "")

    def _divides_by_window(self, step: OptimizerStep, fed: list[Backward]) -> bool:
        """The average of several losses has as many of them as the window has micro-batches: it may
        be the window that they are divided by."""
        loss, turn = fed[-1].loss, micro(fed[-1])
        if loss is None or loss.divided_by is None:
            return False
        windows = [size for each in step.windows for size in (each.size, each.by_default)]
        if turn is not None:
            windows += [turn.loop.turns, None if turn.loop.simulated else len(fed)]
        return loss.divided_by in windows

    def _fed(self, step: OptimizerStep, window: list[Event]) -> list[Backward]:
        """The backwards whose gradients the step applies; none where that is not certain."""
        optimizer = step.optimizer
        fed: list[Backward] = []
        for event in window:
            if is_edit(event) or may_change_gradients(event, optimizer):
                return []
            if isinstance(event, ZeroGrad) and clears(event, optimizer) is not False:
                fed = []
            elif isinstance(event, Backward) and self.feeds(event, optimizer):
                unknown = event.by == "foreign" and not event.undivided
                if unknown or micro(event) is None:
                    return []
                fed.append(event)
        return fed

    def _summed(self, step: OptimizerStep, fed: list[Backward]) -> bool:
        """Micro-batches in turns of the step's own loop."""
        turn = micro(step)
        if not inside(fed[-1], turn):
            return False
        same = [each for each in fed if each.place == fed[-1].place]
        turns = {micro(each) for each in same}
        if len(turns) < 2 or len(turns) < len(same) or not all(map(_is_plain_mean, same)):
            return False
        # Not: a backward for each task or part of one batch, in a loop of its own.
        return all(each is None or turn is None or each.loop is turn.loop for each in turns)

    def _of_inner_loop(self, step: OptimizerStep, fed: list[Backward]) -> str:
        """The number of micro-batches, each with a new batch, in a counted loop that the step comes
        after; empty without one."""
        takes = [each for each in fed[-1].turns if each.loop.takes]
        turn, around = takes[-1] if takes else micro(fed[-1]), len(step.turns)
        if turn is None or not around or not (turn.loop.counted or turn.loop.takes):
            return ""
        if any(
            each.place != fed[-1].place
            or each.turns[:around] != step.turns
            or [other.loop for other in each.turns[around:]] != [turn.loop]
            or not _is_plain_mean(each)
            for each in fed
        ):
            return ""
        batches = [self._fetched(each, step.optimizer) for each in fed]
        collects = turn.loop.takes and turn.loop.simulated == 1  # one stands for all of a list
        if (len(fed) < 2 and not collects) or not all(batches) or len(set(batches)) < len(fed):
            return ""
        return spelled(turn.loop.turns) if turn.loop.turns else "N"

    def _fetched(self, backward: Backward, optimizer: Optimizer) -> int:
        """When the batch of the one forward that a loss went through was fetched; a pair or a
        triplet goes through one model part by part. A frozen network may have made the targets."""
        loss = backward.loss
        through = [
            each
            for each in self.timeline.events
            if isinstance(each, ModelForward) and loss is not None and each.serial in loss.forwards
        ]
        through = [each for each in through if optimizer.trains(each.model)] or through
        fetched = {each.fetched if each.turns == backward.turns else 0 for each in through}
        one_model = len({each.model for each in through}) == 1
        return fetched.pop() if one_model and len(fetched) == 1 else 0

    def _report(self, step: OptimizerStep, backward: Backward, size: str) -> None:
        says = _says_of(step.optimizer)
        self.report(
            backward.place,
            f"Each loss is the mean over its micro-batch and is not divided by `{size}`:"
            f" the accumulated gradient is `{size}` times too large.{says}",
            related=[
                (
                    step.place,
                    f"{named(step.optimizer, step.spelled)} steps once per `{size}` micro-batches",
                )
            ],
            fix=_remedy(backward, size),
            severity="advice" if accumulates_by_option(step) else None,
        )


def _says_of(optimizer: Optimizer) -> str:
    """The part of the factor that an optimizer like Adam does not divide away."""
    if not ignores_gradient_scale(optimizer):
        return ""
    kind = optimizer.kind.rpartition(".")[2]
    return (
        f" `{kind}` divides this away, but what clips the gradients, or adds weight decay to them,"
        " acts before that."
    )


def _remedy(backward: Backward, size: str) -> str:
    turn = micro(backward)
    if turn is None or turn.loop.framework != "Trainer":
        return f"Divide the loss by `{size}` before `backward()`."
    return (
        "Set `loss_is_scaled_for_ga = False` in the class, and the Trainer divides; or take the sum"
        " and divide it by `num_items_in_batch`."
    )


def _is_plain_mean(event: Backward) -> bool:
    loss = event.loss
    return loss is not None and loss.reduced == "mean" and loss.divided is False
