"""The outputs of an epoch are collected for its score, and let go of; numbers are kept for good."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(4096, 16)
loader = DataLoader(TensorDataset(x, x[:, :8].argmax(dim=1)), batch_size=512, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
history = {"loss": [], "accuracy": []}
for epoch in range(20):
    outputs, labels = [], []
    for inputs, targets in loader:
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history["loss"].append(loss.item())
        outputs.append(logits.detach())
        labels.append(targets)
    right = torch.cat(outputs).argmax(dim=1) == torch.cat(labels)
    history["accuracy"].append(right.float().mean().item())
print(history["accuracy"][-1])
