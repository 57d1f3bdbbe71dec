"""The same with `cross_validate`, which deals the folds, seeds each training and sums up the
scores; with `keep=` it continues after an interruption."""

import torch
from data import measurements
from torch import nn

import trueloop

FOLDS, EPOCHS = 5, 8

inputs, labels = measurements(200, seed=0)


def scores_of(fold):
    mean, std = inputs[fold.train].mean(dim=0), inputs[fold.train].std(dim=0)
    scaled = (inputs - mean) / std
    train = trueloop.Feed((scaled[fold.train], labels[fold.train]), 20, shuffle=True)
    val = trueloop.Feed((scaled[fold.val], labels[fold.val]), 40)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    accuracy = trueloop.metrics.for_task("multiclass", classes=2)
    step = trueloop.Step(model, torch.optim.Adam(model.parameters(), lr=2e-2), loss_fn)
    for batch in trueloop.batches(step, train, epochs=EPOCHS):
        step(batch)
    return trueloop.evaluate(model, val, loss_fn, accuracy)


result = trueloop.cross_validate(scores_of, labels, folds=FOLDS)
print(f"accuracy {result.mean['accuracy']:.4f} ± {result.std['accuracy']:.4f}")
