"""`len(batch)` of a batch that is a dict is taken for its number of samples.

## What it does

Finds `len(batch)` by which a loss is multiplied, by which hits are divided, or that is added to a
count of samples, where the batch is a dict.

## Why it breaks training

The length of a dict is its number of keys. A batch `{"input_ids": ..., "labels": ...}` of 32
samples has length 2. An accuracy divided by it is 16 times too large, a loss that is divided by it
trains with a gradient 16 times too large, and a mean that is weighted by it weights a short last
batch like a full one. The numbers look plausible where the error cancels, and nothing raises.

## Wrong

```python
for batch in loader:
    loss = model(**batch).loss
    total += loss.item() * len(batch)
    count += len(batch)
```

## Right

```python
for batch in loader:
    loss = model(**batch).loss
    total += loss.item() * len(batch["labels"])
    count += len(batch["labels"])
```

## Sources

- PyTorch,
  [default_collate](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.default_collate):
  samples that are dicts become one dict of batches
- Python, [len(dict)](https://docs.python.org/3/library/stdtypes.html#dict): the number of items

## How it is detected

In source, the data set's `__getitem__`, or the loader's `collate_fn`, returns a dict in every
`return`, or one of a list of dicts that the class fills; in a running program the batch is a dict
whose tensors have a different number of rows. The source of the loop, and of the functions of the
same file that get the batch, shows what the length is used for. Not reported: lengths that are
printed or compared, batches whose entries are gone through one by one (several tasks or views), and
classes that define `__len__`.
"""

from __future__ import annotations

from trueloop.doctor.model.value_events import KeysCounted
from trueloop.doctor.rules.base import Rule


class LengthOfADictBatch(Rule):
    code = "TL721"

    def on_keys_counted(self, event: KeysCounted) -> None:
        counts = f" ({event.keys}), not its {event.samples} samples" if event.keys else ""
        self.report(
            event.place,
            f"`{event.batch}` is a dict: `len({event.batch})` is the number of its keys{counts}."
            " It is used here as the number of samples.",
            fix=f"Take the length of an entry: `len({event.batch}[...])`.",
        )
