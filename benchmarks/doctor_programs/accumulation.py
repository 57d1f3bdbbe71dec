"""Gradients accumulated over four micro-batches, the last window short."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

accumulation_steps = 4
epochs = 3
features = torch.randn(112, 12)
labels = (features[:, 0] > features[:, 1]).long()
train_loader = DataLoader(TensorDataset(features, labels), batch_size=8, shuffle=True)

model = nn.Sequential(nn.Linear(12, 20), nn.Tanh(), nn.Linear(20, 2))
optimizer = optim.Adam(model.parameters(), lr=0.01)


def train_epoch(epoch):
    model.train()
    total_loss = 0.0
    optimizer.zero_grad()
    for step, (x, y) in enumerate(train_loader):
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        total_loss += loss.item()
        loss = loss / accumulation_steps
        loss.backward()
        if (step + 1) % accumulation_steps == 0 or (step + 1) == len(train_loader):
            nn.utils.clip_grad_norm_(model.parameters(), 0.2)
            optimizer.step()
            optimizer.zero_grad()
    return total_loss / len(train_loader)


for epoch in range(epochs):
    average = train_epoch(epoch)
    print(f"epoch {epoch}: {average:.4f}")
