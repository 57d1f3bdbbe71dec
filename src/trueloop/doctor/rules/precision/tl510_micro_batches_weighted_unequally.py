"""The micro-batches of an update hold different numbers of targets, and their means count the same.

## What it does

Finds gradient accumulation that averages the mean losses of micro-batches with different numbers of
tokens, valid targets or samples.

## Why it breaks training

A mean divides by the number of targets of its own micro-batch. Where micro-batches have different
numbers of them (sentences of different lengths, labels of -100, batches of a token budget), the
average of the means is not the mean over all targets: a target in a small micro-batch weighs more
than one in a large one, and the update is not that of the large batch. Nothing raises, and the
result depends on how the batch happens to be cut.

## Wrong

```python
for batch in micro_batches:
    loss = F.cross_entropy(model(batch.x), batch.y, ignore_index=-100)
    (loss / len(micro_batches)).backward()
optimizer.step()
```

## Right

```python
total = sum((batch.y != -100).sum() for batch in micro_batches)
for batch in micro_batches:
    loss = F.cross_entropy(model(batch.x), batch.y, ignore_index=-100, reduction="sum")
    (loss / total).backward()
optimizer.step()
```

`trueloop.Step(..., accumulate=N)` does this.

## Sources

- Hugging Face, [Fixing Gradient
  Accumulation](https://huggingface.co/blog/gradient_accumulation): the loss "should be the total
  loss across all batches in a gradient accumulation step divided by the total number of all
  non-padding tokens"
- Unsloth, [Gradient Accumulation Bug Fix](https://unsloth.ai/blog/gradient)

## How it is detected

In a running program: between two steps the same line computes the loss of different samples, each
time a mean (or a sum that is divided by its own number of targets), every mean has the same share
of what `backward` is called on, and in two updates or more the numbers of targets differ by 10% or
more. Where only the last batch of an epoch is shorter, it is advice. In source: the loader's
`collate_fn`, or the code that draws the batches, pads with `pad_sequence` or with lists (`row +
[PAD] * (longest - len(row))`), or the rows of the targets are written into a tensor of one number,
or a comparison puts one in the place of some (`targets[position < start] = -100`); the loss ignores
the padding, and it is divided by the number of micro-batches of a step. Not reported: losses that
are weighted by their numbers of targets; gradients divided afterwards; micro-batches of one sample;
pictures (a target for each pixel), class weights, several losses of one batch, and losses that are
not divided (TL505).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, BatchFetched, GradEdited, Loss, OptimizerStep
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Sequence
from trueloop.doctor.model.loss_measurements import CountedBatch, UpdateOfMicroBatches
from trueloop.doctor.model.things import Criterion, Loop, Size, Tensor
from trueloop.doctor.rules.shared.step_order import StepRule, may_change_gradients, micro

_APART = 1.1
"""Ratio of two numbers of targets from which on they differ."""
_UPDATES = 2
"""Updates that a warning takes."""
_FIX = 'Use `reduction="sum"` and divide by the number of targets of the whole update.'


class MicroBatchesWeightedUnequally(StepRule):
    code = "TL510"

    def __init__(self) -> None:
        super().__init__()
        self.losses: dict[Criterion, Location] = {}
        """Where they were computed last."""
        self.padding: dict[Criterion, frozenset[float]] = {}
        """The numbers that fill up their targets."""
        self.lists: set[Loop] = set()
        """Loops over batches that a loader has given before."""
        self.edited = False
        self.uneven: dict[Location, list[list[CountedBatch]]] = {}
        self.largest: dict[Location, int] = {}
        """Samples of the largest micro-batch so far."""
        self.short: dict[Location, list[CountedBatch]] = {}
        """Shorter ones, which may be the last of their loops."""

    # ------------------------------------------------------------------ in source

    def on_batch_fetched(self, event: BatchFetched) -> None:
        if event.loader is None and any(isinstance(e, Tensor) for e in _parts(event.batch)):
            self.lists.add(event.loop)

    def on_loss(self, event: Loss) -> None:
        self.losses[event.criterion] = event.place
        if isinstance(event.target, Tensor):
            self.padding[event.criterion] = event.target.padding

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        sizes = {each.size for each in event.windows if each.size is not None}
        window = self.window(event.optimizer)
        fed = [
            each
            for each in window
            if isinstance(each, Backward) and self.feeds(each, event.optimizer)
        ]
        edited = any(
            isinstance(each, GradEdited) or may_change_gradients(each, event.optimizer)
            for each in window
        )
        if edited or not fed or len({each.place for each in fed}) != 1:
            return
        size = sizes.pop() if len(sizes) == 1 else _divisor(event, fed)
        criterion = self._ignores_padding(fed[-1], size) if size is not None else None
        if criterion is not None:
            self.report(
                self.losses.get(criterion, fed[-1].place),
                "Each loss is the mean over the real targets of its micro-batch, whose sequences"
                f" are padded to different lengths, and is divided by `{size}`: the"
                " means count the same, however many targets they have. The gradient is not that"
                " of the large batch.",
                fix=_FIX,
            )

    def _ignores_padding(self, event: Backward, size: Size) -> Criterion | None:
        """The criterion of a mean over the targets without padding, divided by the window."""
        turn, loss = micro(event), event.loss
        if turn is None or loss is None or len(loss.criteria) != 1:
            return None
        if loss.reduced != "mean" or not loss.divided or loss.divided_by != size:
            return None
        criterion = next(iter(loss.criteria))
        loader = loss.loader if turn.loop in self.lists else turn.loop.loader
        if loader is not None and loader.batch_size == 1:
            return None
        padding = self.padding.get(criterion, frozenset())
        padding |= loader.padding if loader is not None else frozenset()
        known = criterion.kind in ("CrossEntropyLoss", "NLLLoss") and "weight" not in (
            criterion.arguments
        )
        ignored = criterion.arguments.get("ignore_index", -100)
        return criterion if known and ignored in padding else None

    # ------------------------------------------------------------------ live

    def on_grad_edited(self, event: GradEdited) -> None:
        self.edited = True

    def on_update_of_micro_batches(self, event: UpdateOfMicroBatches) -> None:
        edited, self.edited = self.edited, False
        found = event.micro_batches
        if edited or max(each.samples for each in found) < 2:
            return
        place = event.place
        largest = max(self.largest.get(place, 0), *(each.samples for each in found))
        self.largest[place] = largest
        continued = [
            each
            for each in self.short.pop(place, [])
            if any(each.loop is other.loop and other.turn > each.turn for other in found)
        ]
        last = found[-1]
        ends_short = 0 < last.samples < largest
        before = found[:-1] if ends_short else found
        if ends_short:
            self.short[place] = [last]
        if continued or _differ(before):
            self.uneven.setdefault(place, []).append(found)
            if len(self.uneven[place]) >= _UPDATES:
                self._warn(place)
        elif ends_short and _differ(found):
            self._advise(place, last, largest)

    def _warn(self, place: Location) -> None:
        self.findings = [
            each for each in self.findings if each.place != place or each.severity != "advice"
        ]
        window = max(self.uneven[place], key=_ratio)
        counts = [each.targets for each in window]
        self.report(
            place,
            f"One update adds up {len(window)} micro-batches with {min(counts)} to {max(counts)}"
            " targets, and the mean of each counts the same: a target in the smallest weighs"
            f" {max(counts) / min(counts):.1f} times as much as one in the largest. The gradient is"
            " not that of the large batch.",
            fix=_FIX,
        )

    def _advise(self, place: Location, last: CountedBatch, largest: int) -> None:
        self.report(
            place,
            f"The last batch has {last.samples} samples and the others have {largest}, but its"
            " mean counts as much in the update: its samples weigh"
            f" {largest / last.samples:.1f} times as much.",
            fix="Pass `drop_last=True` to the loader, or weight each mean by `len(batch)`.",
            severity="advice",
        )


def _divisor(step: OptimizerStep, fed: list[Backward]) -> Size:
    """The number that the losses of an inner loop, which the step comes after, are divided by."""
    turns = [micro(each) for each in fed]
    loops = {each.loop for each in turns if each is not None}
    if step.windows or len(loops) != 1 or None in turns:
        return None
    if any(each.loop in loops for each in step.turns):
        return None
    loss = fed[-1].loss
    size = loss.divided_by if loss is not None else None
    # A list that collects batches has one here, and in a real run as many as its length says.
    listed = isinstance(size, str) and size.startswith("len(<Sequence")
    return size if listed or len({*turns}) > 1 else None


def _parts(batch: object) -> list[object]:
    return [*batch.values] if isinstance(batch, Sequence) else [batch]


def _ratio(found: list[CountedBatch]) -> float:
    counts = [each.targets for each in found]
    return max(counts) / min(counts)


def _differ(found: list[CountedBatch]) -> bool:
    return len(found) > 1 and _ratio(found) >= _APART
