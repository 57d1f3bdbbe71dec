"""Ignite: a `Checkpoint` handler with trainer, model and optimizer, and `load_objects` to go on.

`DeterministicEngine` is what its documentation offers for the same dataflow after a resume. Without
workers, version 0.5.5 restores the generators before the loader draws its permutation, which is
then another one; a worker makes the loader draw it first, hence the third way.
"""

from __future__ import annotations

import torch
from ignite.engine import Engine, Events
from ignite.engine.deterministic import DeterministicEngine
from ignite.handlers import Checkpoint, DiskSaver
from ignite.utils import manual_seed
from torch import Tensor
from toy import EPOCHS, LR, SEED, STOP, Trial


def main() -> None:
    trial = Trial("default", "DeterministicEngine", "DeterministicEngine, 1 worker")
    manual_seed(SEED)
    model = trial.model()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)

    def update(engine: Engine, batch: tuple[Tensor, Tensor]) -> float:
        inputs, targets = batch
        model.train()
        optimizer.zero_grad()
        loss = trial.criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer = Engine(update) if trial.way == "default" else DeterministicEngine(update)
    objects = {"trainer": trainer, "model": model, "optimizer": optimizer}
    if trial.resumes:
        # The generators' states among it are more than weights_only=True admits.
        saved = torch.load(next(trial.folder.glob("*.pt")), weights_only=False)
        Checkpoint.load_objects(to_load=objects, checkpoint=saved)
    else:
        keep = Checkpoint(objects, DiskSaver(trial.folder))
        trainer.add_event_handler(Events.ITERATION_COMPLETED(once=STOP), keep)
    workers = 1 if trial.way.endswith("1 worker") else 0
    trainer.run(trial.loader(workers), max_epochs=EPOCHS)
    trial.finish(model)


if __name__ == "__main__":
    main()
