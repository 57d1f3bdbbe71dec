"""Training calls the inner module although DistributedDataParallel wraps it.

## What it does

Finds a forward pass through `model.module(x)`, or through the model object from before wrapping.
DDP prepares the hooks that average gradients in the wrapper's own forward.

## Why it breaks training

Each rank steps with the gradients of its own batches. The replicas diverge from the first update;
the run is as many separate small-batch runs as there are ranks, and all but the saved one are
wasted. Every rank's loss falls, and nothing raises.

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

`backward()` runs on a loss whose only forward passes went through the module inside a DDP wrapper,
and an optimizer of that module steps. Not reported: evaluation and generation through
`model.module`, its methods beside a forward pass of the wrapper, gradients that are averaged by
hand, and a process group with one rank.
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
