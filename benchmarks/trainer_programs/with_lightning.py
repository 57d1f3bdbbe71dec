"""Lightning: validation, a schedule by the step, accumulation, clipping."""

from __future__ import annotations

import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader
from toy import FEATURES, KINDS, finish, samples

Batch = tuple[Tensor, Tensor, Tensor]


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.2))
        self.kind = nn.Linear(32, KINDS)
        self.size = nn.Linear(32, 1)
        self.seen: list[Tensor] = []

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(features)
        return self.kind(hidden), self.size(hidden).squeeze(1)

    def loss_of(self, batch: Batch) -> Tensor:
        features, kinds, sizes = batch
        logits, guesses = self(features)
        return F.cross_entropy(logits, kinds) + F.mse_loss(guesses, sizes)

    def training_step(self, batch: Batch, index: int) -> Tensor:
        loss = self.loss_of(batch)
        self.log("loss", loss, on_step=True, on_epoch=True)
        self.seen.append(loss.detach())
        return loss

    def on_train_epoch_end(self) -> None:
        self.seen.clear()

    def validation_step(self, batch: Batch, index: int) -> None:
        self.log("validation loss", self.loss_of(batch))

    def configure_optimizers(self) -> dict[str, object]:
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=steps)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(0, verbose=False)
    model = Classifier()
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train_loader = DataLoader(samples(512, 1), 16, shuffle=True)
    trainer.fit(model, train_loader, DataLoader(samples(128, 2), 32))
    finish(model)


if __name__ == "__main__":
    main()
