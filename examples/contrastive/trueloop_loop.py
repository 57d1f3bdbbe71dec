"""The same with Step, which takes any batch that its loss takes, and `predict` for embeddings."""

import torch
from data import neighbour_accuracy, samples, view
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

import trueloop

EPOCHS, TEMPERATURE = 12, 0.2

torch.manual_seed(0)
train = trueloop.Feed(samples(1024, seed=0)[0], 128, shuffle=True, drop_last=True)
held_out, labels = samples(400, seed=1)
val = trueloop.Feed(held_out, 100)
model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def info_nce(model: nn.Module, views: tuple[Tensor, Tensor]) -> Tensor:
    one, two = views
    logits = normalize(model(one)) @ normalize(model(two)).T / TEMPERATURE
    return cross_entropy(logits, torch.arange(len(one)))


step = trueloop.Step(model, optimizer, info_nce)
for inputs in trueloop.batches(step, train, epochs=EPOCHS):
    step((view(inputs), view(inputs)))

embedded = trueloop.predict(model, val)
print(f"neighbour_accuracy {neighbour_accuracy(normalize(embedded), labels):.4f}")
