"""Batch means are added up and divided by the number of samples.

## What it does

Finds a loss or accuracy that is a mean over each batch, is summed over the batches, and is divided
by `len(loader.dataset)`.

## Why it breaks training

Each batch contributes its mean, so the sum has one term per batch, not one per sample. The score is
too small by a factor of the batch size: with batches of 64, a loss of 2.3 is printed as 0.036. It
changes with the batch size, is not comparable with other runs or with a validation loss that is
computed correctly, and looks like a model that is already good.

## Wrong

```python
total = 0.0
for x, y in loader:
    total += criterion(model(x), y).item()
loss = total / len(loader.dataset)
```

## Right

```python
total = 0.0
for x, y in loader:
    total += criterion(model(x), y).item() * len(x)
loss = total / len(loader.dataset)
```

## Sources

- PyTorch,
  [CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html):
  `reduction="mean"` is the default
- PyTorch, [basic MNIST example](https://github.com/pytorch/examples/blob/main/mnist/main.py), which
  sums with `reduction="sum"` before it divides by the number of samples

## How it is detected

In source, the means of the batches of one loader are added up (or collected in a list) and divided
by the length of its data set, and its batches have several samples. In a running program, a loss
function was called with `reduction="mean"` for a batch of several samples; the source of the
function that goes through the loader shows that nothing but its value is added up in each turn, in
a variable or by an object of a class in the same file, and that the total is divided by the length
of the same loader's data set. Not reported:
`reduction="sum"`, sums that are weighted by the batch size, quotients that are multiplied by it,
counts of hits, scores of single samples, a total that nothing reads after it is divided, a division
under a condition (live), and loaders whose batch size is not known, or is 1 unless an option
changes it.
"""

from __future__ import annotations

from trueloop.doctor.model.value_events import MeansOverSamples
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class SumOfBatchMeans(Rule):
    code = "TL720"

    def on_means_over_samples(self, event: MeansOverSamples) -> None:
        loader = event.loader
        size = loader.batch_size
        known = isinstance(size, int)
        small = f"{size} times too small" if known else "too small by a factor of the batch size"
        self.report(
            event.place,
            f"This divides a sum of batch means of {called(loader, 'the loader')} by the number of"
            f" samples: the score is {small}.",
            fix="Multiply each batch's mean by its size before adding it, or divide by the number"
            " of batches.",
            related=[(loader.made, "the loader, whose batches have several samples")],
        )
