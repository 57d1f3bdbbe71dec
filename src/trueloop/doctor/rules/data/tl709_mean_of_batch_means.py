"""A validation score is the mean of batch means, although the last batch is smaller.

## What it does

Finds a loss or accuracy per batch that is summed up and divided by the number of batches, where the
data set is not a multiple of the batch size: samples of the smaller last batch count for more.

## Why it breaks training

The reported score is not that of the data set. With 100 samples in batches of 32, each of the last
four samples counts eight times as much as the others. The score changes with the batch size, so
runs cannot be compared, and those few samples may decide the best epoch or a learning-rate
reduction. It looks like noise.

## Wrong

```python
total = 0.0
for x, y in val_loader:
    total += criterion(model(x), y).item()
val_loss = total / len(val_loader)
```

## Right

```python
total = 0.0
for x, y in val_loader:
    total += criterion(model(x), y).item() * len(x)
val_loss = total / len(val_loader.dataset)
```

## Sources

- PyTorch, `torch.utils.data.DataLoader` (`drop_last`: otherwise the last batch is smaller):
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
- PyTorch, "Training with PyTorch", where such a mean is shown for a quick look:
  https://docs.pytorch.org/tutorials/beginner/introyt/trainingyt.html

## How it is detected

In a pass without gradients, batch means of one loader are added up and divided by the number of its
batches (`len(loader)`, a count, the last index and one), or are collected in a list or a tensor
whose mean is taken, or go into a meter (`update(value, n=1)`) without their number of samples; and
the sizes are known and do not divide. Where the sizes are not known, and the loader is not trained
on, it is advice. Not reported: training losses printed on the way, sums weighted by the batch size,
`reduction="sum"`, `drop_last=True`, samplers, loops that end after a few batches, scores of single
samples.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Ended, LoopEntered, Used
from trueloop.doctor.model.things import Loader
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, trained_loader

_REMEDIES = {
    "mean of batch means": "Multiply each batch's mean by its size, and divide the sum by the"
    " number of samples.",
    "mean of a meter": "Pass the number of samples in the batch as the weight, which is 1 here.",
}


class MeanOfBatchMeans(Rule):
    code = "TL709"

    def __init__(self) -> None:
        super().__init__()
        self._trained: set[Loader] = set()
        self._undecided: list[tuple[Used, Loader]] = []
        self._cut: set[Loader] = set()
        """Loaders whose last loop ends after a number of batches."""

    def on_loop_entered(self, event: LoopEntered) -> None:
        loader = event.loop.loader
        if loader is not None and event.loop.cut_at is not None:
            self._cut.add(loader)
        elif loader is not None:
            self._cut.discard(loader)

    def on_backward(self, event: Backward) -> None:
        loader = trained_loader(event)
        if loader is not None:
            self._trained.add(loader)

    def on_ended(self, event: Ended) -> None:
        for use, loader in self._undecided:
            if loader not in self._trained:
                self._advise(use, loader)

    def on_used(self, event: Used) -> None:
        if event.what not in _REMEDIES or not isinstance(event.subject, Loader):
            return
        loader = event.subject
        size = loader.dataset.size if loader.dataset is not None else None
        batch = loader.batch_size
        if loader.drop_last is not False or loader.sampler is not None or batch is None:
            return
        if loader in self._cut:
            return
        if not (isinstance(size, int) and isinstance(batch, int)):
            self._undecided.append((event, loader))
            return
        rest = size % batch if batch > 0 else 0
        if not rest or size < batch:
            return
        self.report(
            event.place,
            "This is a mean of batch means, but the last batch of"
            f" {called(loader, 'the loader')} has {rest} samples instead of {batch}: each"
            f" of its samples counts {batch / rest:.3g} times as much as the others.",
            fix=_REMEDIES[event.what],
            related=[(loader.made, f"{size} samples in batches of {batch}")],
        )

    def _advise(self, use: Used, loader: Loader) -> None:
        """The sizes are not known: the last batch is probably shorter than the others."""
        whole = loader.batch_size == 1 or "len(" in str(loader.batch_size)
        if whole or not loader.known or loader.open or loader.iterable:
            return
        self.report(
            use.place,
            "This is a mean of batch means. Unless the number of samples is a multiple of the batch"
            f" size, the last batch of {called(loader, 'the loader')} is smaller, and its samples"
            " count for more than the others.",
            fix=_REMEDIES[use.what],
            related=[(loader.made, "`drop_last` is off")],
            severity="advice",
        )
