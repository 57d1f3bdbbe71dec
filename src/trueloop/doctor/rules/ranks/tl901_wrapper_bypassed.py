"""Training runs through the bare module although DistributedDataParallel wraps it.

## What it does

The forward pass calls `model.module(x)`, or the model as it was before it was wrapped. The hooks by
which DDP averages gradients are armed in the wrapper's own forward.

## Why it breaks training

Each rank steps with the gradients of its own batches. The replicas drift apart from the first
update; the run is as many separate small-batch runs as there are ranks, of which one is saved and
the rest is waste. Every rank's loss falls, nothing raises.

## Wrong

```python
ddp = DistributedDataParallel(model)
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
```

## Right

```python
    loss = criterion(ddp(x), y)
```

## Sources

- PyTorch, "Distributed Data Parallel", "Internal Design":
  https://docs.pytorch.org/docs/stable/notes/ddp.html
- PyTorch, `torch.nn.parallel.DistributedDataParallel`:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html

## How it is detected

A loss is back-propagated whose only forward passes went through the module inside a DDP wrapper,
and an optimizer of that module steps. Silent for evaluation and generation through `model.module`,
for its methods beside a forward pass of the wrapper's, where gradients are averaged by hand, and
in a run whose process group has one rank.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    GradEdited,
    Made,
    ModelForward,
    OptimizerStep,
    Used,
)
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, is_alone, makes_world_of_one


class WrapperBypassed(Rule):
    code = "TL901"

    def __init__(self) -> None:
        super().__init__()
        self._wrapper: dict[Model, Model] = {}
        """Bare module -> the DDP wrapper around it."""
        self._bare: dict[int, ModelForward] = {}
        self._pending: ModelForward | None = None
        self._is_alone = False

    def on_made(self, event: Made) -> None:
        thing = event.thing
        alone = self._is_alone or (isinstance(thing, Model) and is_alone(thing))
        if isinstance(thing, Model) and thing.wrapper == "ddp" and not alone:
            inner = thing.wraps
            while inner is not None:
                self._wrapper[inner] = thing
                inner = inner.wraps

    def on_model_forward(self, event: ModelForward) -> None:
        if event.grad and event.model in self._wrapper:
            self._bare[event.serial] = event

    def on_backward(self, event: Backward) -> None:
        self._pending = None
        serials = event.loss.forwards if event.loss is not None else frozenset()
        if serials and all(serial in self._bare for serial in serials) and event.by != "foreign":
            self._pending = self._bare[min(serials)]

    def on_grad_edited(self, event: GradEdited) -> None:
        self._pending = None

    def on_used(self, event: Used) -> None:
        self._is_alone |= makes_world_of_one(event)
        if event.what.startswith("torch.distributed.") and "reduce" in event.what:
            self._pending = None

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        bypass, self._pending = self._pending, None
        if bypass is None or not event.optimizer.trains(bypass.model):
            return
        wrapper = self._wrapper[bypass.model]
        self.report(
            bypass.place,
            f"This forward pass bypasses {called(wrapper, 'the DDP wrapper')}: gradients"
            " are not averaged over the ranks, and the replicas diverge.",
            fix=f"Call {called(wrapper, 'the wrapper')} itself.",
            related=[
                (wrapper.made, "wrapped here"),
                (event.place, "steps with local gradients"),
            ],
        )
