"""Trueloop: a loop of one's own, one line that goes on and one that saves (docs/checkpoints.md)."""

from __future__ import annotations

import torch
from toy import BATCH, EPOCHS, LR, SEED, STOP, Trial

import trueloop


def main() -> None:
    trial = Trial("default")
    trueloop.seed_everything(SEED)
    model = trial.model()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    step = trueloop.Step(model, optimizer, trueloop.supervised(trial.criterion))
    train = trueloop.Feed(trial.samples(), BATCH, shuffle=True, seed=SEED)
    saved = trueloop.Checkpoints(trial.folder, every=f"{STOP} updates")
    # The write is asynchronous; the others' are over when the next update begins.
    trial.before_kill = saved.wait
    saved.resume(step, train)
    for epoch in range(step.epoch, EPOCHS):
        for batch in train.epoch(epoch, start=step.batch):
            step(batch)
            saved.keep(step, train)
        step.end_epoch()
    saved.wait()
    trial.finish(model)


if __name__ == "__main__":
    main()
