"""The same with `layer_decay` and `unfreeze`: the optimizer has all parameters from the start, and
a resumed run knows what is frozen."""

import torch
from data import pretrained, textures
from torch import nn

import trueloop
from trueloop import optimizers, schedules

EPOCHS, UNFREEZE, LR, LAYER_DECAY = 6, 2, 1e-2, 0.3

torch.manual_seed(0)
train = trueloop.Feed(textures(256, seed=0), 32, shuffle=True)
val = trueloop.Feed(textures(256, seed=1), 128)
model = pretrained()
step = trueloop.Step(
    model,
    optimizers.adamw(
        model,
        lr=LR,
        weight_decay=0.05,
        layer_decay=LAYER_DECAY,
        layers=["stem", "body", "head"],
    ),
    trueloop.supervised(nn.CrossEntropyLoss()),
    schedule=schedules.cosine(),
    unfreeze={"stem": f"{UNFREEZE} epochs", "body": f"{UNFREEZE} epochs"},
)
accuracy = trueloop.metrics.for_task("multiclass", classes=4)
history = trueloop.fit(step, train, val, epochs=EPOCHS, metrics=accuracy)

print(f"val_accuracy {history.records[-1].scores['val_accuracy']:.4f}")
