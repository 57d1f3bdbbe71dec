"""Ranks that should have the same parameters have different ones.

## What it does

Finds models that every rank trains a copy of, and whose parameters differ between ranks during
training: in DistributedDataParallel, and in programs that average gradients themselves.

## Why it breaks training

The wrapper copies rank 0's parameters once, when it is created, and then averages gradients only. A
program that averages gradients itself (`dist.all_reduce(p.grad)`) must also start with equal
parameters: with a different seed on each rank they never were equal. Everything that changes
parameters on one rank only stays there: a checkpoint that one rank loads after wrapping, a learning
rate that each rank lowers by its own validation loss, a step on one rank only, steps with gradients
that were not averaged (`no_sync`). The averaged gradient then fits no rank's weights. The loss
stalls or is worse than on one device, and a checkpoint scores differently from the log. Nothing
raises.

## Wrong

```python
model = DistributedDataParallel(model)
scheduler = ReduceLROnPlateau(optimizer)
scheduler.step(validate(model, my_part))  # the loss differs between ranks
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

In a program on several ranks: at a few of the first fifty updates, and more rarely later, each rank
writes the norms of its parameters and gradients and some of their values to the store of the
process group; rank 0 compares them without waiting. The parameters must differ by more than a
thousandth of their size at three checks in a row, at the same point: after the same number of
updates, or with the same averaged gradient. Without DistributedDataParallel only parameters count
whose gradients the program sums over the ranks before the step. Not reported: parameters that the
program averages itself (local SGD), custom communication hooks, sharded parameters (FSDP, tensor
parallelism), buffers, frozen parameters, and parameters that the wrapper ignores.
"""

from __future__ import annotations

from trueloop.doctor.model.measurements import RanksDiffer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called


class RanksDiverge(Rule):
    code = "TL904"

    def on_ranks_differ(self, event: RanksDiffer) -> None:
        one = event.of == 1
        counted = "" if one else f", and {event.count} of the {event.of} compared differ"
        message = (
            f"After {event.updates} updates the parameters of"
            f" {called(event.subject, 'the model')} differ between ranks 0 and"
            f" {event.rank}: `{event.parameter}` differs by {event.by:.1%} of"
            f" its size{counted}. The ranks train different models."
        )
        if event.same is not None:
            message += f" They were still equal after {event.same} updates."
        mine, yours = event.rates
        rates = [(a, b) for a, b in zip(mine, yours, strict=False) if a != b]
        if rates:
            a, b = rates[0]
            message += f" The learning rate is {a:g} on rank 0 and {b:g} on rank {event.rank}."
        self.report(event.place, message, fix=_fix(event))


def _fix(event: RanksDiffer) -> str:
    if event.wrapped:
        return (
            "Change parameters, gradients and learning rates in the same way on every"
            " rank; load weights before you wrap the model."
        )
    if event.same is None:
        return (
            "Copy rank 0's parameters to all ranks before training:"
            " `dist.broadcast(p.data, 0)` for each, or wrap the model in"
            " DistributedDataParallel."
        )
    return "Change parameters, gradients and learning rates in the same way on every rank."
