"""Accumulation by four; every fifty micro-batches a validation, before which memory is freed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WINDOW, LOOK_EVERY = 4, 50
torch.manual_seed(0)
waves, words = torch.randn(800, 12), torch.randint(0, 5, (800,))
held_waves, held_words = torch.randn(60, 12), torch.randint(0, 5, (60,))
net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 5))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()


def look(seen):
    net.eval()
    with torch.no_grad():
        print(seen, criterion(net(held_waves), held_words).item())
    net.train()


seen = 0
for epoch in range(2):
    optimizer.zero_grad()
    loader = DataLoader(TensorDataset(waves, words), batch_size=4, shuffle=True)
    for i, (wave, word) in enumerate(loader):
        loss = criterion(net(wave), word) / WINDOW
        loss.backward()
        if (i + 1) % WINDOW == 0:
            optimizer.step()
            optimizer.zero_grad()
        seen += 1
        if seen % LOOK_EVERY == 0:
            optimizer.zero_grad()
            look(seen)
