import os

import torch
from torch import nn

file = "forecast.pt"
network = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
if os.path.exists(file):
    network = torch.load(file)
    network.eval()
    with torch.no_grad():
        print("before", network(torch.zeros(1, 24)).item())
    network.train()
optimizer = torch.optim.SGD(network.parameters(), lr=1e-2)
for _ in range(20):
    hours = torch.randn(16, 25)
    loss = (network(hours[:, :24]) - hours[:, 24:]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(network, file)
torch.save(network.state_dict(), file + ".weights")
