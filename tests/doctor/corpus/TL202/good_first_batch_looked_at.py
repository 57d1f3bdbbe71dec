"""Before training, one batch goes through the network, to see shapes and the first loss."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
signals, kinds = torch.randn(96, 1, 20), torch.randint(0, 3, (96,))
batches = DataLoader(TensorDataset(signals, kinds), batch_size=16, shuffle=True)
network = nn.Sequential(
    nn.Conv1d(1, 6, 5), nn.BatchNorm1d(6), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(96, 3)
)
measure = nn.CrossEntropyLoss()

with torch.no_grad():
    for signal, kind in batches:
        scores = network(signal)
        print(signal.shape, scores.shape, "first loss", measure(scores, kind).item())
        break

optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for epoch in range(3):
    for signal, kind in batches:
        optimizer.zero_grad()
        loss = measure(network(signal), kind)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
