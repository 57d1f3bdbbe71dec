"""Training data that lies class by class is read in that order, without shuffling.

## What it does

The loader that is trained on does not shuffle, and its data set holds one class after the other.

## Why it breaks training

Every batch holds a single class, and for a long stretch of the epoch there is nothing but that
class: the model learns to answer with it, then unlearns it for the next one. The training loss
looks excellent, since within a stretch a constant answer is right; accuracy on validation is near
chance or swings from epoch to epoch. Batch norm sees the statistics of one class at a time.
Nothing raises.

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

A loader without `shuffle`, sampler or batch sampler is trained on, and the order of its data set
is known: `ImageFolder` and its like, labels put together class by class (`torch.cat` of zeros and
ones, `repeat_interleave`), or samples sorted by label. Silent for loaders that are only validated
on, for loops that throw the labels away (`for images, _ in loader`), for one batch that holds
everything, and wherever the order of the labels is not known.
"""

from __future__ import annotations

from trueloop.doctor.events import Backward
from trueloop.doctor.findings import Place
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.evidence import batch_loop, called, trained_loader
from trueloop.doctor.things import Dataset, Loader


class TrainDataNotShuffled(Rule):
    code = "TL703"

    def on_backward(self, event: Backward) -> None:
        loader = trained_loader(event)
        if loader is None or not loader.known or loader.shuffle is not False:
            return
        if loader.sampler is not None or loader.facts.get("open") or loader.dataset is None:
            return
        ordered = _order(loader.dataset)
        if ordered is None or _is_one_batch(loader) or _without_labels(event):
            return
        self.report(
            loader.made,
            f"{called(loader, 'This loader')} is trained on without shuffling, and its samples lie"
            " class by class: for long stretches every batch holds a single class.",
            fix="Pass `shuffle=True`.",
            related=[(ordered, "what puts them in this order")],
        )


def _order(dataset: Dataset) -> Place | None:
    found: Place | None = dataset.facts.get("sorted")
    return found


def _without_labels(event: Backward) -> bool:
    """`for images, _ in loader`: nobody asks for the classes."""
    loop = batch_loop(event)
    return loop is not None and len(loop.variables) > 1 and loop.variables[-1] == "_"


def _is_one_batch(loader: Loader) -> bool:
    """All samples fit into one batch, or that cannot be told from how the size is written."""
    size, batch = loader.dataset.size if loader.dataset else None, loader.batch_size
    if batch is None or batch == size or (isinstance(batch, str) and "len(" in batch):
        return True
    return isinstance(size, int) and isinstance(batch, int) and batch >= size
