"""Ranks that should hold the same parameters hold different ones.

## What it does

Finds models in DistributedDataParallel whose parameters differ between ranks while they train.

## Why it breaks training

The wrapper copies the first rank's parameters once, when it is made, and from there on averages
gradients alone. Whatever else changes parameters on one rank only stays there: a checkpoint that
one rank loads after wrapping, a learning rate that each rank lowers by its own validation loss,
steps with gradients that were never averaged (`no_sync`). From then on the averaged gradient is
that of no model: each rank's gradient was taken at other weights. One would see a loss that stalls
or is worse than on one device, and a checkpoint that scores differently from what was logged.
Nothing raises.

## Wrong

```python
model = DistributedDataParallel(model)
scheduler = ReduceLROnPlateau(optimizer)
scheduler.step(validate(model, my_part))  # another loss on every rank
```

## Right

```python
loss = validate(model, my_part)
dist.all_reduce(loss, op=dist.ReduceOp.AVG)
scheduler.step(loss)
```

## Sources

- PyTorch, [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
- PyTorch, [Distributed data parallel: internal
  design](https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design)

## How it is detected

While the program runs on several ranks (under `torchrun`): at a few calls of the wrapper within
the first fifty updates, and ever more rarely after, each rank puts the sizes of its parameters and
some of their numbers into the store of the process group; the first rank compares what has come
in, and waits for nobody. They must differ by more than a thousandth of a parameter's size at three
looks in a row, after the same number of updates on each rank. Parameters that the program averages
itself (local SGD), and gradients that are reduced by a communication hook of its own, are silent,
and so is what the wrapper was told to ignore.
"""

from __future__ import annotations

from trueloop.doctor.events import Measured
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.evidence import called


class RanksDiverge(Rule):
    code = "TL904"

    def on_measured(self, event: Measured) -> None:
        if event.what != "ranks differ":
            return
        values = event.values
        one = values["of"] == 1
        counted = "" if one else f", as do {values['count']} of the {values['of']} compared"
        message = (
            f"After {values['updates']} updates the parameters of"
            f" {called(event.subject, 'the model')} are not the same on ranks 0 and"
            f" {values['rank']}: numbers of `{values['parameter']}` differ by {values['by']:.1%} of"
            f" its size{counted}."
        )
        if values["same"] is not None:
            message += f" After {values['same']} updates they still were the same."
        mine, yours = values["rates"]
        rates = [(a, b) for a, b in zip(mine, yours, strict=False) if a != b]
        if rates:
            a, b = rates[0]
            message += f" The learning rate is {a:g} on rank 0 and {b:g} on rank {values['rank']}."
        self.report(
            values["place"],
            message,
            fix="Do alike on every rank whatever changes parameters, gradients or learning rates;"
            " load weights before the model is wrapped.",
        )
