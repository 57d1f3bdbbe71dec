"""skorch: `NeuralNetClassifier` as it comes, with its split of its own and a plateau schedule."""

from __future__ import annotations

import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, LRScheduler
from torch import nn
from toy import FEATURES, KINDS, finish, samples


def main() -> None:
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, KINDS)),
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=0.01,
        max_epochs=5,
        batch_size=16,
        iterator_train__shuffle=True,
        callbacks=[
            ("schedule", LRScheduler("ReduceLROnPlateau", monitor="valid_loss", patience=1)),
            ("stop", EarlyStopping(patience=4)),
        ],
    )
    features, kinds, _ = samples(512, 1).tensors
    net.fit(features.numpy(), kinds.numpy())
    print(f"{net.score(features.numpy(), kinds.numpy()):.4f}")
    finish(net.module_)


if __name__ == "__main__":
    main()
