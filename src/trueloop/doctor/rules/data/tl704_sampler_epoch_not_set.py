"""A `DistributedSampler` never gets `set_epoch(epoch)`: every epoch has the same order.

## What it does

Finds a shuffling `DistributedSampler` that is used for several epochs without `set_epoch`. It
shuffles with the seed `seed + epoch`, so that all ranks agree, and its `epoch` is 0 until
`set_epoch` is called.

## Why it breaks training

Without the call each epoch has the same batches in the same order on the same rank, and each rank
only ever sees its own share of the data. The loss still falls, a little worse; nothing raises. A
run in one process, whose `RandomSampler` needs no such call, behaves differently.

## Wrong

```python
loader = DataLoader(dataset, batch_size=32, sampler=DistributedSampler(dataset))
for epoch in range(epochs):
    for batch in loader:
        ...
```

## Right

```python
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        ...
```

## Sources

- PyTorch, `torch.utils.data.distributed.DistributedSampler` (warning on `set_epoch`):
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler

## How it is detected

A loader with a shuffling `DistributedSampler` is trained on in a second epoch, and `set_epoch` was
not called on its sampler. Not reported: a single epoch (unless an option says more, too),
`shuffle=False`, a sampler created for each epoch, loaders passed to a library (Accelerate and
Lightning call it themselves), and source that calls `set_epoch` on a sampler of that name in a
different branch.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Used
from trueloop.doctor.model.findings import Insert, Location, Remedy
from trueloop.doctor.model.things import Loader, Loop, Sampler
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import batch_loop, called, trained_loader


class SamplerEpochNotSet(Rule):
    code = "TL704"

    def __init__(self) -> None:
        super().__init__()
        self._with_epoch: set[Sampler] = set()
        self._passes: dict[Loader, list[Loop]] = {}

    def on_used(self, event: Used) -> None:
        if event.what.endswith("DistributedSampler.set_epoch"):
            self._with_epoch.add(event.subject)

    def on_backward(self, event: Backward) -> None:
        loader, loop = trained_loader(event), batch_loop(event)
        if loader is None or loop is None or loop.loader is not loader:
            return
        passes = self._passes.setdefault(loader, [])
        # All of them may come out of one generator.
        inner = next(turn.loop for turn in event.turns if turn.loop.loader is loader)
        if inner not in passes:
            passes.append(inner)
        sampler = _shuffling(loader)
        if sampler is not None and (sampler in self._with_epoch or sampler.epoch_set):
            self.refute(loop.place)
            return
        if len(passes) < 2 or sampler is None:
            return
        if loader.exposed or sampler.exposed or loader.epoch_set:
            return
        around = [turn.loop for turn in event.turns if turn.loop.loader is not loader]
        if around and all(each.cut_at == 1 for each in around):  # one epoch, by an option
            return
        self.report(
            loop.place,
            f"{called(sampler, 'The `DistributedSampler` of this loader')} never gets"
            " `set_epoch(epoch)`: every epoch uses the same order of samples.",
            fix="Call `set_epoch(epoch)` on the sampler at the start of every epoch.",
            related=[(sampler.made, "the sampler")],
            remedies=_remedies(event, sampler, loop.place),
        )


def _shuffling(loader: Loader) -> Sampler | None:
    sampler = loader.sampler
    if isinstance(sampler, Sampler) and sampler.kind.endswith("BatchSampler"):
        inner = sampler.attributes.get("sampler")
        sampler = inner if isinstance(inner, Sampler) else None
    if not isinstance(sampler, Sampler) or not sampler.kind.endswith("DistributedSampler"):
        return None
    return sampler if sampler.shuffle else None


def _remedies(event: Backward, sampler: Sampler, loop: Location) -> list[Remedy]:
    """Where the sampler and the epoch have names in the function of the loop."""
    for turn in event.turns:
        outer = turn.loop
        here = outer.place.function == loop.function and outer.place.path == loop.path
        known = sampler.made.function == loop.function or sampler.name.startswith("self.")
        named = here and known and bool(sampler.name)
        if named and outer.kind == "epochs" and len(outer.variables) == 1:
            return [Insert(f"{sampler.name}.set_epoch({outer.variables[0]})", loop, "before")]
    return []
