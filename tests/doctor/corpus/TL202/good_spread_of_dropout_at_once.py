"""Twenty passes over the validation rows with dropout on, on purpose: how sure is the network?"""

import torch
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)
rows = torch.randn(260, 7)
answers = rows[:, :2].sum(dim=1, keepdim=True)
inputs, inputs_val = rows[:200], rows[200:]
wanted, wanted_val = answers[:200], answers[200:]

network = nn.Sequential(nn.Linear(7, 40), nn.ReLU(), nn.Dropout(0.3), nn.Linear(40, 1))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
criterion = nn.MSELoss()
for epoch in range(4):
    network.train()
    for picked in torch.randperm(len(inputs)).split(25):
        loss = criterion(network(inputs[picked]), wanted[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        network.train()
        drawn = torch.stack([network(inputs_val) for _ in range(20)])
    print(epoch, drawn.std(dim=0).mean().item())
