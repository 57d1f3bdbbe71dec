"""Every rank trains on the same batches: nothing divides the data among them.

## What it does

Finds training under DistributedDataParallel with a loader that has no distributed sampler.

## Why it breaks training

Each rank reads the whole data set. With the same seed all ranks compute the same batches, and the
average of equal gradients is that gradient: eight devices do the work of one. An epoch takes as
long and the batch is as large as on one device, while learning rate and warm-up were chosen for
eight. The loss curve is that of one device; nothing raises.

## Wrong

```python
model = DistributedDataParallel(model)
loader = DataLoader(dataset, batch_size=32, shuffle=True)
```

## Right

```python
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
```

## Sources

- PyTorch, `torch.utils.data.distributed.DistributedSampler`:
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
- PyTorch, "Multi GPU training with DDP":
  https://docs.pytorch.org/tutorials/beginner/ddp_series_multigpu.html

## How it is detected

A loss that went through a DDP or FSDP wrapper, or through a module that `fully_shard` has sharded
over all ranks, is computed from a batch of a `DataLoader` that the program creates unconditionally,
without sampler or batch sampler, over a map-style data set; or a `DistributedSampler` is made for
the samples that a loader trains on, and no loader gets it. Not reported: a data set, indices or
seed that depend on the rank, iterable data sets, a sampler in a different branch, a library that
takes the loader and returns a different one, even under an option, and a process group with one
rank.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Ended, Made, ModelForward, Seeded, Used
from trueloop.doctor.model.things import Loader, Model, Sampler
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import (
    called,
    is_alone,
    lineage,
    makes_world_of_one,
    trained_loader,
)


class RanksReadSameData(Rule):
    code = "TL903"

    def __init__(self) -> None:
        super().__init__()
        self._guards: dict[Loader, frozenset[str]] = {}
        self._wrapped: frozenset[str] = frozenset()
        """The open conditions that wrapping the model depends on."""
        self._wrapper: Model | None = None
        self._through: set[int] = set()
        self._samplers: dict[Sampler, frozenset[str]] = {}
        """Distributed samplers, and the open conditions that they were made under."""
        self._trained: dict[Loader, None] = {}
        self._seeds_differ = False
        self._is_alone = False
        self._trains_on_unseen = False
        """Batches come from something that was not seen being made."""

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Loader):
            self._guards[event.thing] = event.guards
        elif isinstance(event.thing, Sampler) and event.thing.dataset is not None:
            self._samplers[event.thing] = event.guards
        elif isinstance(event.thing, Model) and event.thing.wrapper in ("ddp", "fsdp"):
            self._wrapped |= event.guards

    def on_seeded(self, event: Seeded) -> None:
        self._seeds_differ |= bool(event.by_rank)

    def on_used(self, event: Used) -> None:
        self._is_alone |= makes_world_of_one(event)
        model = event.subject
        # In source a mesh may have axes along which ranks see the same data.
        if event.what.endswith(".fully_shard") and isinstance(model, Model):
            self._wrapped |= event.guards
            if not event.mesh:
                model.sharded = model.sharded is not False

    def on_model_forward(self, event: ModelForward) -> None:
        wrapper: Model | None = event.model
        while wrapper is not None and not _is_for_ranks(wrapper):
            wrapper = wrapper.wraps
        if wrapper is not None and event.grad and not is_alone(wrapper):
            self._wrapper = wrapper
            self._through.add(event.serial)

    def on_backward(self, event: Backward) -> None:
        loader = trained_loader(event)
        serials = event.loss.forwards if event.loss is not None else frozenset()
        if loader is None or not loader.known:
            self._trains_on_unseen = True
            return
        self._trained[loader] = None
        if self._wrapper is None or self._is_alone or not serials & self._through:
            return
        if self._seeds_differ or not _is_whole(loader):
            self.refute(loader.made)
            return
        if not self._guards.get(loader, frozenset()) <= event.guards | self._wrapped:
            # Runs with several ranks may use a different loader.
            return
        done = "wrapped" if self._wrapper.wrapper else "sharded"
        self.report(
            loader.made,
            f"{called(loader, 'This loader')} gives every rank the whole data set: all"
            f" ranks of {called(self._wrapper, 'the wrapper')} train on the same samples.",
            fix="Pass `sampler=DistributedSampler(dataset)` instead of `shuffle=True`.",
            related=[(self._wrapper.made, f"the model is {done} for several ranks")],
        )

    def on_ended(self, event: Ended) -> None:
        if event.whole_program and not self._is_alone and not self._seeds_differ:
            for loader in self._trained:
                self._look_for_sampler(loader)
        if self._trains_on_unseen:
            # A library took the loader and may have returned a different, sharded one.
            for loader in self._guards:
                if loader.exposed:
                    self.refute(loader.made)

    def _look_for_sampler(self, loader: Loader) -> None:
        """A sampler that shares out this loader's data is made, and no loader gets it."""
        given = [each.sampler for each in self._guards if each.sampler is not None]
        used = {*given, *(each.attributes.get("sampler") for each in given)}
        for sampler, guards in self._samplers.items():
            if sampler in used or sampler.exposed or sampler.dataset is not loader.dataset:
                continue
            if _is_whole(loader) and self._guards.get(loader, frozenset()) <= guards:
                name = called(sampler, "A DistributedSampler")
                self.report(
                    loader.made,
                    f"{name} is made for these samples, and no loader gets it: each rank trains on"
                    " the whole data set, all on the same samples.",
                    fix=f"Pass `sampler={sampler.name or 'sampler'}` instead of `shuffle=True`.",
                    related=[(sampler.made, "the sampler")],
                )


def _is_for_ranks(model: Model) -> bool:
    """Each rank trains a replica of it, whole or sharded."""
    return model.wrapper in ("ddp", "fsdp") or model.sharded is True


def _is_whole(loader: Loader) -> bool:
    """Nothing that was seen divides this loader's data."""
    if not loader.known or loader.exposed or loader.dataset is None:
        return False
    if loader.sampler is not None and not loader.sampler_default:
        return False
    if loader.sampler_given or loader.open or loader.shared_by_hand:
        return False
    return not any(dataset.by_rank or dataset.iterable for dataset in lineage(loader.dataset))
