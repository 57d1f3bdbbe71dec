"""Lightning: `ModelCheckpoint`, and `fit(..., ckpt_path=...)` to go on.

`resumable loader` does what the warning of Lightning's that meets such a resume asks for: the
loader has `state_dict` and `load_state_dict`, which Lightning saves and restores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader
from toy import BATCH, EPOCHS, LR, SEED, STOP, Trial


class Order(torch.utils.data.Sampler[list[int]]):
    """Batches of a permutation that (seed, epoch) decide, from a given one on."""

    def __init__(self, samples: int) -> None:
        self.samples, self.epoch, self.start = samples, 0, 0

    def __len__(self) -> int:
        return self.samples // BATCH

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(SEED + self.epoch)
        order = torch.randperm(self.samples, generator=generator).split(BATCH)
        for indices in order[self.start :]:
            self.start += 1
            if self.start == len(self):  # Lightning does not ask again after the last batch
                self.epoch, self.start = self.epoch + 1, 0
            yield indices.tolist()


class ResumableLoader(DataLoader[Any]):
    """A loader without workers that knows where it stands."""

    def state_dict(self) -> dict[str, int]:
        order = self.batch_sampler
        return {"epoch": order.epoch, "start": order.start}

    def load_state_dict(self, state: dict[str, int]) -> None:
        order = self.batch_sampler
        order.epoch, order.start = state["epoch"], state["start"]


class Module(L.LightningModule):
    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.model: nn.Module = trial.model()
        self.criterion = trial.criterion

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        inputs, targets = batch
        return self.criterion(self.model(inputs), targets)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=LR)


def main() -> None:
    trial = Trial("default", "resumable loader")
    L.seed_everything(SEED, workers=True)
    module = Module(trial)
    loader: DataLoader[Any] = trial.loader()
    if trial.way == "resumable loader":
        samples = trial.samples()
        loader = ResumableLoader(samples, batch_sampler=Order(len(samples)))
    trainer = L.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        deterministic=True,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ModelCheckpoint(trial.folder, every_n_train_steps=STOP, save_top_k=-1)],
    )
    saved = next(trial.folder.glob("*.ckpt")) if trial.resumes else None
    trainer.fit(module, loader, ckpt_path=saved)
    trial.finish(module.model)


if __name__ == "__main__":
    main()
