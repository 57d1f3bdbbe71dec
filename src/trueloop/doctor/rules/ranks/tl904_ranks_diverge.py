"""Ranks that should hold the same parameters hold different ones.

## What it does

Finds models that every rank trains a copy of, and whose parameters differ between ranks while they
train: in DistributedDataParallel, and in programs that average gradients themselves.

## Why it breaks training

The wrapper copies the first rank's parameters once, when it is made, and from there on averages
gradients alone. A program that averages gradients itself (`dist.all_reduce(p.grad)`) has to see to
equal parameters at the start, too: with a seed of its own on each rank they never were equal.
Whatever else changes parameters on one rank only stays there: a checkpoint that one rank loads
after wrapping, a learning rate that each rank lowers by its own validation loss, a step that only
one rank takes, steps with gradients that were never averaged (`no_sync`). From then on the averaged
gradient is that of no model: each rank's gradient was taken at other weights. One would see a loss
that stalls or is worse than on one device, and a checkpoint that scores differently from what was
logged. Nothing raises.

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

While the program runs on several ranks: at a few updates of the first fifty, and ever more rarely
after, each rank puts the sizes of its parameters and gradients and some of their numbers into the
store of the process group; the first rank compares what has come in, and waits for nobody. The
parameters must differ by more than a thousandth of their size at three looks in a row, at the same
point of the work: the ranks have made as many updates, or hold the same averaged gradient. Without
DistributedDataParallel only parameters count whose gradients the program sums over the ranks before
the step, so that both apply the same one. Parameters that the program averages itself (local SGD),
gradients that are reduced by a communication hook of its own, sharded parameters (FSDP, tensor
parallelism), buffers, frozen parameters and what the wrapper ignores by option are silent.
"""

from __future__ import annotations

from typing import Any

from trueloop.doctor.model.events import Measured
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class RanksDiverge(Rule):
    code = "TL904"

    def on_measured(self, event: Measured) -> None:
        if event.what != "ranks differ":
            return
        values = event.values
        one = values["of"] == 1
        counted = "" if one else f", and {values['count']} of the {values['of']} compared differ"
        message = (
            f"After {values['updates']} updates the parameters of"
            f" {called(event.subject, 'the model')} differ between ranks 0 and"
            f" {values['rank']}: `{values['parameter']}` differs by {values['by']:.1%} of"
            f" its size{counted}. The ranks train different models."
        )
        if values["same"] is not None:
            message += f" They were still equal after {values['same']} updates."
        mine, yours = values["rates"]
        rates = [(a, b) for a, b in zip(mine, yours, strict=False) if a != b]
        if rates:
            a, b = rates[0]
            message += f" The learning rate is {a:g} on rank 0 and {b:g} on rank {values['rank']}."
        self.report(values["place"], message, fix=_fix(values))


def _fix(values: dict[str, Any]) -> str:
    if values["wrapped"]:
        return (
            "Change parameters, gradients and learning rates in the same way on every"
            " rank; load weights before you wrap the model."
        )
    if values["same"] is None:
        return (
            "Copy rank 0's parameters to all ranks before training:"
            " `dist.broadcast(p.data, 0)` for each, or wrap the model in"
            " DistributedDataParallel."
        )
    return "Change parameters, gradients and learning rates in the same way on every rank."
