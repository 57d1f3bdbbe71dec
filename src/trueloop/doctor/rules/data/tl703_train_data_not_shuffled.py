"""Training data is sorted by class and is not shuffled.

## What it does

Finds a training loader that does not shuffle, over a data set that has one class after the other.

## Why it breaks training

Most batches contain a single class: the model learns to predict it, then forgets it for the next
one. The training loss looks excellent, since a constant answer is right for long stretches;
validation accuracy is near chance or varies strongly from epoch to epoch. Batch norm uses the
statistics of one class at a time. Nothing raises.

## Wrong

```python
train_set = torchvision.datasets.ImageFolder("train")  # in the order of the folders
loader = DataLoader(train_set, batch_size=64)
```

## Right

```python
loader = DataLoader(train_set, batch_size=64, shuffle=True)
```

## Sources

- PyTorch, `torch.utils.data.DataLoader` (`shuffle` is False by default):
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
- L. Bottou, "Stochastic Gradient Descent Tricks", section 4.1 (shuffle the examples):
  https://doi.org/10.1007/978-3-642-35289-8_25

## How it is detected

A loader without `shuffle`, sampler or batch sampler is trained on, and the order of its data set is
known: `ImageFolder` and similar classes, labels concatenated class by class (`torch.cat` of zeros
and ones, `repeat_interleave`), a `ConcatDataset` of parts that return one label each, or samples
sorted by label. In a running program the labels at the loss are observed: over a whole epoch, or
over at least four classes, each class must come in one run. Not reported: loaders used only for
validation or for gradients that no step in the loop applies (adversarial examples, saliency maps),
loops that ignore the labels (`for images, _ in loader`), one batch with everything, and an unknown
order of labels. Batches that are cut by hand (`y[i : i + size]`, `y.split(size)`) are read as
well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trueloop.doctor.model.events import (
    Backward,
    EscapedToUnknown,
    Event,
    LoopLeft,
    Loss,
    ManualUpdate,
    OptimizerStep,
    SamplingGap,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import LabelRuns
from trueloop.doctor.model.things import Dataset, Loader, Loop, Optimizer, Sampler
from trueloop.doctor.model.value_events import OrderedSlice
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import batch_loop, called, trained_loader

_SHUFFLE = "Shuffle the samples in every epoch."


@dataclass
class _Order:
    """The labels of a loop, in the order in which they were trained on."""

    place: Location
    runs: list[list[float]] = field(default_factory=list)
    """Label and how often it came in a row."""
    turns: list[int] = field(default_factory=list)
    mixed: bool = False
    trained: bool = False


class TrainDataNotShuffled(Rule):
    code = "TL703"

    def __init__(self) -> None:
        super().__init__()
        self._orders: dict[Loop, _Order] = {}
        self._fed: dict[Loop, list[tuple[Loader, Location]]] = {}
        """Loops that have computed gradients of sorted samples, and have not stepped yet."""
        self._slices: dict[int, OrderedSlice] = {}
        """By the identity of the labels."""
        self._cut: dict[Loop, tuple[Location, Location]] = {}
        """Loops that have computed a loss of such labels: its place, and where they were sorted."""

    def on_label_runs(self, event: LabelRuns) -> None:
        turn = event.turn
        if turn is None:
            return
        order = self._orders.setdefault(turn.loop, _Order(event.place))
        runs = event.runs
        begun = turn.index == 0 if not order.turns else turn.index == order.turns[-1] + 1
        order.mixed = order.mixed or not runs or not begun or order.place != event.place
        if order.mixed:
            order.runs.clear()
            return
        order.turns.append(turn.index)
        for label, count in runs:
            if order.runs and order.runs[-1][0] == label:
                order.runs[-1][1] += count
            else:
                order.runs.append([label, count])

    def on_loop_left(self, event: LoopLeft) -> None:
        order = self._orders.pop(event.loop, None)
        if order is not None:
            self._check(event.loop, order, whole=True)

    def on_sampling_gap(self, event: SamplingGap) -> None:
        for loop, order in self._orders.items():
            self._check(loop, order, whole=False)
        self._orders.clear()

    def _check(self, loop: Loop, order: _Order, whole: bool) -> None:
        """Each class came in one piece."""
        labels = {label for label, _ in order.runs}
        if order.mixed or not order.trained:
            return
        runs, again = _once(order)
        if len(labels) < (2 if whole or again else 4) or len(labels) < len(runs):
            return
        count = int(sum(number for _, number in runs))
        if count < 10 * len(labels) or len(order.turns) < 2:
            return
        loader = loop.loader
        if loader is not None and not _in_order(loader):
            return
        self.report(
            order.place if loader is None else loader.made,
            f"{called(loader, 'This data')} is not shuffled, and its samples are sorted by"
            f" class: {count} samples came in {len(labels)} runs, one per class. Each"
            " update learns a single class and forgets the others.",
            fix="Pass `shuffle=True`." if loader is not None else _SHUFFLE,
        )

    def on_ordered_slice(self, event: OrderedSlice) -> None:
        self._slices[id(event.part)] = event

    def on_loss(self, event: Loss) -> None:
        cut, turn = self._slices.get(id(event.target)), event.turn
        if cut is None or turn is None or not event.grad or turn.loop.turns == 1:
            return
        if turn.loop.loader is None and len(event.turns) > 1:
            self._cut[turn.loop] = (event.place, cut.ordered)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self._trains(event)

    def on_manual_update(self, event: ManualUpdate) -> None:
        self._trains(event)

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        if any(isinstance(thing, Optimizer) for thing in event.things):
            self._trains(event)

    def _trains(self, event: Event) -> None:
        """Parameters change in a loop: its gradients are not those of an attack."""
        for turn in event.turns:
            order = self._orders.get(turn.loop)
            if order is not None:
                order.trained = True
            for loader, ordered in self._fed.pop(turn.loop, ()):
                self._report(loader, ordered)
            cut = self._cut.pop(turn.loop, None)
            if cut is not None:
                self.report(
                    cut[0],
                    "The samples of this loss come in the same order in every epoch, and they are"
                    " sorted by class: most batches contain a single class, and each update learns"
                    " that class and forgets the others.",
                    fix=_SHUFFLE,
                    related=[(cut[1], "sorts the samples")],
                )

    def on_backward(self, event: Backward) -> None:
        loader = trained_loader(event)
        if loader is None or not loader.known or loader.shuffle is not False:
            return
        if loader.sampler is not None or loader.open or loader.dataset is None:
            return
        ordered = _order(loader.dataset)
        if ordered is None or _is_one_batch(loader) or _without_labels(event):
            return
        if event.by == "foreign":
            self._report(loader, ordered)
        for turn in {*event.turns[-1:], *(t for t in event.turns if t.loop.kind == "batches")}:
            self._fed.setdefault(turn.loop, []).append((loader, ordered))

    def _report(self, loader: Loader, ordered: Location) -> None:
        self.report(
            loader.made,
            f"{called(loader, 'This loader')} does not shuffle, and its samples are sorted"
            " by class: most batches contain a single class, and each update learns that"
            " class and forgets the others.",
            fix="Pass `shuffle=True`.",
            related=[(ordered, "sorts the samples")],
        )


def _once(order: _Order) -> tuple[list[list[float]], bool]:
    """The runs of labels of one pass over the data, where a loop that makes batches by hand is
    gone through again and again, with each class in several batches; and whether it is."""
    runs = order.runs
    period = next((i for i, run in enumerate(runs) if i and run[0] == runs[0][0]), len(runs))
    again = len(runs) >= 2 * period and len(order.turns) >= 2 * len(runs)
    # The last run may not be over.
    if not again or any(run != runs[i - period] for i, run in enumerate(runs[:-1]) if i >= period):
        return runs, False
    return runs[:period], True


def _in_order(loader: Loader) -> bool:
    """It reads its data set from the first sample to the last."""
    sampler = loader.sampler
    if loader.shuffle is not False:
        return False
    by_class = isinstance(sampler, Sampler) and sampler.kind.endswith("SequentialSampler")
    return sampler is None or by_class


def _order(dataset: Dataset) -> Location | None:
    found: Location | None = dataset.sorted_by_label
    return found


def _without_labels(event: Backward) -> bool:
    """`for images, _ in loader`: the labels are not used."""
    loop = batch_loop(event)
    return loop is not None and loop.variables[-1:] == ("_",)


def _is_one_batch(loader: Loader) -> bool:
    """All samples fit into one batch, or the size is written so that this is not known."""
    size, batch = loader.dataset.size if loader.dataset else None, loader.batch_size
    if batch is None or batch == size or (isinstance(batch, str) and "len(" in batch):
        return True
    return isinstance(size, int) and isinstance(batch, int) and batch >= size
