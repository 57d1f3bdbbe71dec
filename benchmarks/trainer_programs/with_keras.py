"""keras on torch: `compile` and `fit`, as they come and with a `train_step` of one's own."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from toy import FEATURES, KINDS, finish, samples


def network() -> list[keras.layers.Layer]:
    return [
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(KINDS),
    ]


class Own(keras.Sequential):
    """Trains as keras's guide to torch does it."""

    seen: list[Tensor] = []  # noqa: RUF012

    def train_step(self, data: tuple[Tensor, Tensor]) -> dict[str, float]:
        features, kinds = data
        self.zero_grad()
        logits = self(features, training=True)
        loss = F.cross_entropy(logits, kinds)
        loss.backward()
        weights = list(self.trainable_weights)
        gradients = [each.value.grad for each in weights]
        with torch.no_grad():
            self.optimizer.apply(gradients, weights)
        self.seen.append(loss.detach())
        return {"loss": loss.item()}


def main() -> None:
    keras.utils.set_random_seed(0)
    train_x, train_y, _ = samples(512, 1).tensors
    test_x, test_y, _ = samples(128, 2).tensors
    trained = []
    for kind in (keras.Sequential, Own):
        model = kind([keras.Input((FEATURES,)), *network()])
        steps = 4 * len(train_x) // 16
        model.compile(
            optimizer=keras.optimizers.AdamW(
                keras.optimizers.schedules.CosineDecay(0.01, steps), clipnorm=1.0
            ),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(
            train_x.numpy(), train_y.numpy(), batch_size=16, epochs=4, verbose=0,
            validation_data=(test_x.numpy(), test_y.numpy()),
        )  # fmt: skip
        trained.append(model)
    finish(nn.ModuleList(trained))


if __name__ == "__main__":
    main()
