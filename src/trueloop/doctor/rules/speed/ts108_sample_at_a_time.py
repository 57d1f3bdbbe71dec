"""Samples of tensors in memory are read one by one and stacked into batches.

## What it does

Finds loaders over tensors in memory whose samples are read one by one and collated, if this takes
10% or more of an update's time.

## Why it breaks training

Nothing is wrong, but training is slow. A batch of 256 takes 256 calls of `__getitem__`, 256 small
tensors and one `torch.stack`, all in Python. Indexing the tensors with the whole batch does the
same in one call. Workers help little: they do the same work and send the result.

## Wrong

```python
data = TensorDataset(inputs, targets)
loader = DataLoader(data, batch_size=256, shuffle=True)
```

## Right

```python
data = TensorDataset(inputs, targets)
batches = BatchSampler(RandomSampler(data), batch_size=256, drop_last=False)
loader = DataLoader(data, sampler=batches, batch_size=None)
```

## Sources

- PyTorch, [disable automatic
  batching](https://docs.pytorch.org/docs/stable/data.html#disable-automatic-batching): loading
  batches in bulk

## How it is detected

In a running program: the data set is a `TensorDataset`, a subset of one, or one whose `__getitem__`
only indexes tensors; torch's default collation stacks batches of at least eight samples; and
waiting for it takes 10% or more of an update, in at least twenty updates. Not reported: data sets
that fetch whole batches (`__getitems__`).
"""

from __future__ import annotations

from trueloop.doctor.model.speed_measurements import DataWait
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.1
_FEWEST = 8


class SampleAtATime(Rule):
    code = "TS108"

    def on_data_wait(self, event: DataWait) -> None:
        if not counts(event.updates):
            return
        loader = event.loader
        if event.share < SHARE or not loader.one_by_one:
            return
        size = loader.batch_size
        if not isinstance(size, int) or size < _FEWEST:
            return
        self.report(
            event.place,
            f"{percent(event.share)} of each update is spent waiting for"
            f" {called(loader, 'this loader')}, which reads {size} samples from tensors in"
            f" memory one by one and stacks them: {duration(event.batch)} per batch.",
            fix="Index the tensors with whole batches: DataLoader(data,"
            " sampler=BatchSampler(...), batch_size=None).",
        )
