"""Every worker of a loader has a copy of the data set's random generator.

## What it does

Finds a `DataLoader` with workers whose data set (or its transform) has a private random generator.
Each worker gets a copy of it with its state: all workers draw the same numbers, and the same again
in every epoch, because each epoch starts new workers from the same original.

## Why it breaks training

With four workers only a quarter of the augmentations, noises or crops are different, and the second
epoch repeats the first. Nothing raises, and the loss curve looks normal; the model overfits sooner.
torch gives its own generator, `random` and (since 1.9) the global `numpy.random` a new seed in each
worker and epoch: draws from those are right. It does not know a generator that the data set has.

## Wrong

```python
class Noisy(Dataset):
    def __init__(self, x):
        self.x = x
        self.rng = np.random.default_rng(0)

    def __getitem__(self, i):
        return self.x[i] + self.rng.normal(size=self.x[i].shape)


loader = DataLoader(Noisy(x), batch_size=32, shuffle=True, num_workers=4)
```

## Right

```python
def reseed(worker_id):
    info = torch.utils.data.get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


loader = DataLoader(Noisy(x), batch_size=32, shuffle=True, num_workers=4, worker_init_fn=reseed)
```

## Sources

- PyTorch, "Randomness in multi-process data loading":
  https://docs.pytorch.org/docs/stable/data.html#data-loading-randomness
- T. Pärnamaa, "Using PyTorch + NumPy? You're making a mistake":
  https://tanelp.github.io/posts/a-bug-that-plagues-thousands-of-open-source-ml-projects/

## How it is detected

A loader with workers reads a data set whose `__getitem__`, or what it calls, draws from a generator
that was created before the workers start. Not reported: an option for the number of workers that is
0 unless it is given, `persistent_workers=True` (such workers draw on, and no epoch repeats the one
before), a `worker_init_fn` that reaches the data set or its generator, a generator that is created
or seeded while a sample is read, and draws in the constructor only.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Made
from trueloop.doctor.model.things import Loader
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import trained_loader


class WorkersShareGenerator(Rule):
    code = "TL701"

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Loader) and event.thing.shuffle:
            self._check(event.thing)

    def on_backward(self, event: Backward) -> None:
        loader = trained_loader(event)
        if loader is not None:
            self._check(loader)

    def _check(self, loader: Loader) -> None:
        if loader.workers in (0, None) or loader.reseeds is not False or loader.persistent:
            return  # workers that stay draw on: no epoch repeats the one before
        draws = loader.dataset.draws if loader.dataset is not None else ()
        for draw in draws or ():
            if draw.made is not None:
                count = loader.workers
                workers = f"{count} workers" if isinstance(count, int) else "its workers"
                workers = "1 worker" if count == 1 else workers
                self.report(
                    draw.made,
                    f"The loader starts {workers} with copies of this generator in its"
                    " current state: all workers draw the same random numbers, and the"
                    " same again in every epoch, unless this process draws from it too.",
                    fix="Reseed it in each worker with a `worker_init_fn` that uses"
                    " `get_worker_info().seed`, or use torch's global generator.",
                    related=[
                        (draw.place, "draws from it while a sample is read"),
                        (loader.made, "the loader that starts the workers"),
                    ],
                )
