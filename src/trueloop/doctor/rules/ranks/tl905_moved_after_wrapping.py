"""The model is moved or cast after DDP or FSDP has wrapped it.

## What it does

Finds `.to(device)`, `.cuda()`, `.half()` or `.double()` on the wrapper, or on the inner module,
after the wrapper was created.

## Why it breaks training

At construction DDP broadcasts the parameters, sorts them into buckets by device and dtype and sets
its hooks; FSDP flattens and shards them. After a later cast the hooks of DDP no longer run: no
gradient is averaged, nothing is raised, and the networks of the ranks drift apart (torch 2.13). A
later move leaves buckets on the wrong device: depending on the version the program raises an error
about devices, copies in every step, or does not average the gradients, either.

## Wrong

```python
model = DistributedDataParallel(model)
model.to(device)
```

## Right

```python
model = DistributedDataParallel(model.to(device), device_ids=[local_rank])
```

## Sources

- PyTorch, `torch.nn.parallel.DistributedDataParallel` (warnings on changing the model after it is
  wrapped):
  https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
- PyTorch, `torch.distributed.fsdp.FullyShardedDataParallel`:
  https://docs.pytorch.org/docs/stable/fsdp.html

## How it is detected

A wrapper created in this program, or the module inside it, is later cast to a different dtype or
moved to a device, and then trained. Not reported: moves after training, copies, a move to the
device where the model already was before wrapping, `device_ids`, which says the same, and a process
group with one rank. A model that `fully_shard` has sharded may be moved and cast.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Made, ModelForward, Moved, Used
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, is_alone, makes_world_of_one


class MovedAfterWrapping(Rule):
    code = "TL905"

    def __init__(self) -> None:
        super().__init__()
        self._wrappers: list[Model] = []
        self._moved: set[Model] = set()
        """Modules that were moved before they were wrapped."""
        self._pending: dict[Model, Moved] = {}
        self._through: dict[int, Model] = {}
        self._is_alone = False

    def on_used(self, event: Used) -> None:
        self._is_alone |= makes_world_of_one(event)

    def on_made(self, event: Made) -> None:
        thing = event.thing
        if (
            isinstance(thing, Model)
            and thing.wrapper in ("ddp", "fsdp")
            and thing.wraps is not None
            and not (self._is_alone or is_alone(thing))
        ):
            self._wrappers.append(thing)

    def on_moved(self, event: Moved) -> None:
        for wrapper in self._wrappers:
            if not event.model.covers(wrapper) and event.model is not wrapper.wraps:
                continue
            if _casts(event) or (event.how != "dtype" and self._had_not_been_moved(wrapper)):
                self._pending.setdefault(wrapper, event)
            return
        self._moved.update(event.model.family())

    def _had_not_been_moved(self, wrapper: Model) -> bool:
        """The module is known to have been where it was made when it was wrapped."""
        inner = wrapper.wraps
        if inner is None or not inner.known or inner.exposed or wrapper.device_ids:
            return False
        return inner not in self._moved and not any(m in self._moved for m in inner.parents)

    def on_model_forward(self, event: ModelForward) -> None:
        for wrapper in self._pending:
            if event.grad and event.model.covers(wrapper):
                self._through[event.serial] = wrapper

    def on_backward(self, event: Backward) -> None:
        serials = event.loss.forwards if event.loss is not None else frozenset()
        for serial in serials:
            wrapper = self._through.get(serial)
            moved = self._pending.pop(wrapper, None) if wrapper is not None else None
            if moved is None or wrapper is None:
                continue
            done = "cast to a different dtype" if _casts(moved) else "moved"
            name = {"ddp": "DistributedDataParallel", "fsdp": "FSDP"}[wrapper.wrapper]
            effect = ", so the wrapper still refers to the old parameters."
            if _casts(moved) and wrapper.wrapper == "ddp":
                effect = (
                    ". Its hooks belong to the old parameters: no gradient is averaged, and the"
                    " networks of the ranks drift apart."
                )
            self.report(
                moved.place,
                f"{called(moved.model, 'The model')} is {done} after `{name}` has wrapped"
                f" it{effect}",
                fix="Move and cast the model first, then wrap it.",
                related=[(wrapper.made, "wrapped here")],
            )


def _casts(event: Moved) -> bool:
    return event.to in ("half", "double", "bfloat16", "float16", "float64")
