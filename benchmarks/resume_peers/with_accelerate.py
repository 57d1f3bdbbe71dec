"""Accelerate: `save_state`, and in the new process `load_state`.

- `default`: `load_state` alone;
- `skip_first_batches`: what the guide to checkpoints says of a state saved within an epoch;
- `seedable sampler`: beside it `use_seedable_sampler=True`, "fully reproducible" by its docstring,
  and `set_epoch`.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from toy import BATCHES, LR, SEED, STOP, UPDATES, Trial


def main() -> None:
    trial = Trial("default", "skip_first_batches", "seedable sampler")
    seedable = trial.way == "seedable sampler"
    configuration = DataLoaderConfiguration(use_seedable_sampler=seedable)
    accelerator = Accelerator(cpu=True, dataloader_config=configuration)
    set_seed(SEED)
    model = trial.model()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    model, optimizer, loader = accelerator.prepare(model, optimizer, trial.loader())
    update = 0
    if trial.resumes:
        accelerator.load_state(str(trial.folder))
        update = STOP
    while update < UPDATES:
        batches = loader
        if seedable:
            loader.set_epoch(update // BATCHES)
        if update % BATCHES and trial.way != "default":
            batches = accelerator.skip_first_batches(loader, update % BATCHES)
        for inputs, targets in batches:
            optimizer.zero_grad()
            accelerator.backward(trial.criterion(model(inputs), targets))
            optimizer.step()
            update += 1
            if update == STOP:
                accelerator.save_state(str(trial.folder))
            if update == UPDATES:
                break
    trial.finish(accelerator.unwrap_model(model))


if __name__ == "__main__":
    main()
