"""skorch: a criterion of two parts, callbacks for a schedule and for clipping, validation data."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from skorch import NeuralNet
from skorch.callbacks import GradientNormClipping, LRScheduler
from skorch.helper import predefined_split
from torch import Tensor, nn
from torch.utils.data import Dataset
from toy import FEATURES, KINDS, finish, samples


class Pairs(Dataset[tuple[Tensor, tuple[Tensor, Tensor]]]):
    """Features, and the two targets as one."""

    def __init__(self, count: int, seed: int) -> None:
        self.samples = samples(count, seed)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        features, kind, size = self.samples[index]
        return features, (kind, size)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.2))
        self.kind = nn.Linear(32, KINDS)
        self.size = nn.Linear(32, 1)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(features)
        return self.kind(hidden), self.size(hidden).squeeze(1)


class Both(nn.Module):
    def forward(self, found: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor]) -> Tensor:
        (logits, guesses), (kinds, sizes) = found, wanted
        return F.cross_entropy(logits, kinds) + F.mse_loss(guesses, sizes)


class Net(NeuralNet):
    def initialize(self) -> Net:
        self.seen: list[Tensor] = []
        return super().initialize()

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        self._set_training(True)
        inputs, wanted = batch
        found = self.infer(inputs, **fit_params)
        loss = self.get_loss(found, wanted, X=inputs, training=True)
        loss.backward()
        self.seen.append(loss.detach())
        return {"loss": loss, "y_pred": found}


def main() -> None:
    torch.manual_seed(0)
    net = Net(
        Classifier,
        Both,
        optimizer=torch.optim.AdamW,
        lr=0.01,
        max_epochs=4,
        batch_size=16,
        iterator_train__shuffle=True,
        train_split=predefined_split(Pairs(128, 2)),
        callbacks=[
            ("clip", GradientNormClipping(1.0)),
            ("schedule", LRScheduler("StepLR", step_size=2, gamma=0.5)),
        ],
    )
    net.fit(Pairs(512, 1), y=None)
    finish(net.module_)


if __name__ == "__main__":
    main()
