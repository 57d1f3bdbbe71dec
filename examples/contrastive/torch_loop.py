"""Contrastive learning (InfoNCE of two views) by hand."""

import torch
from data import neighbour_accuracy, samples, view
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.utils.data import DataLoader

EPOCHS, TEMPERATURE = 12, 0.2

torch.manual_seed(0)
train = DataLoader(samples(1024, seed=0)[0], batch_size=128, shuffle=True, drop_last=True)
held_out, labels = samples(400, seed=1)
val = DataLoader(held_out, batch_size=100)
model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def info_nce(one: Tensor, two: Tensor) -> Tensor:
    logits = normalize(model(one)) @ normalize(model(two)).T / TEMPERATURE
    return cross_entropy(logits, torch.arange(len(one)))


model.train()
for _ in range(EPOCHS):
    for inputs in train:
        optimizer.zero_grad()
        info_nce(view(inputs), view(inputs)).backward()
        optimizer.step()

model.eval()
with torch.inference_mode():
    embedded = torch.cat([model(inputs) for inputs in val])
print(f"neighbour_accuracy {neighbour_accuracy(normalize(embedded), labels):.4f}")
