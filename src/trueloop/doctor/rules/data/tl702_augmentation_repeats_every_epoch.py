"""A `worker_init_fn` sets a constant seed: every epoch repeats the same augmentations.

## What it does

Finds a `worker_init_fn` that calls `np.random.seed(42)` or `random.seed(SEED + worker_id)`. Every
epoch starts new workers and sets their generators to the same state.

## Why it breaks training

The crops, flips and noises of the second epoch are those of the first: the augmentation gives one
fixed picture instead of a new one each time. The loss looks healthy and falls faster than it
should; the gap to validation grows. With the same constant for all workers, all of them draw the
same numbers, too. Without a `worker_init_fn`, torch seeds torch, `random` and (since 1.9)
`numpy.random` in each worker, differently in each epoch.

## Wrong

```python
def seed_worker(worker_id):
    np.random.seed(SEED + worker_id)
```

## Right

```python
def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32  # differs by worker and by epoch, follows torch.manual_seed
    np.random.seed(seed)
    random.seed(seed)
```

## Sources

- PyTorch, "Randomness in multi-process data loading":
  https://docs.pytorch.org/docs/stable/data.html#data-loading-randomness
- PyTorch, "Reproducibility", section DataLoader:
  https://docs.pytorch.org/docs/stable/notes/randomness.html#dataloader

## How it is detected

A loader that is trained on for several epochs starts workers (`persistent_workers` is not set), its
`worker_init_fn` seeds a library's generator with a constant, or a constant plus the worker's
number, and reading a sample draws from that library. Not reported: validation loaders, where
repeated draws are intended, and seeds from torch, the time or anything that is not certainly
constant, and an option for the number of workers that is 0 unless it is given.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward
from trueloop.doctor.model.things import Loader, Loop
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import batch_loop, trained_loader

_NAMES = {"numpy": "numpy.random", "random": "random", "torch": "torch"}


class AugmentationRepeatsEveryEpoch(Rule):
    code = "TL702"

    def __init__(self) -> None:
        super().__init__()
        self._epochs: dict[Loader, set[Loop]] = {}

    def on_backward(self, event: Backward) -> None:
        loader, loop = trained_loader(event), batch_loop(event)
        if loader is None or loop is None or loop.loader is not loader:
            return
        epochs = self._epochs.setdefault(loader, set())
        epochs.add(loop)
        if len(epochs) == 2:
            self._check(loader)

    def _check(self, loader: Loader) -> None:
        if loader.workers in (0, None) or loader.persistent is not False:
            return
        draws = loader.dataset.draws if loader.dataset is not None else ()
        drawn = {draw.library: draw.place for draw in draws or ()}
        for seed in loader.worker_seeds or ():
            if seed.constant and seed.library in drawn:
                self.report(
                    seed.place,
                    "Every epoch starts new workers, and each sets the same"
                    f" `{_NAMES[seed.library]}` seed: every epoch repeats the random"
                    " augmentations of the previous one.",
                    fix="Seed with `torch.initial_seed() % 2**32`, which differs by worker"
                    " and by epoch.",
                    related=[
                        (drawn[seed.library], "draws while a sample is read"),
                        (loader.made, "the loader that starts the workers"),
                    ],
                )
                return
