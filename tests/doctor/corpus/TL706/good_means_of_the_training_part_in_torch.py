import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)
road = torch.randint(0, 30, (400,))
hour = torch.rand(400)
delay = torch.sin(road.float()) + 0.4 * hour + 0.3 * torch.randn(400)

order = torch.randperm(400)
seen, unseen = order[:300], order[300:]
count = torch.zeros(30).index_add_(0, road, torch.ones(400))
usual = torch.zeros(30)
usual.index_add_(0, road[seen], delay[seen])
usual /= torch.bincount(road[seen], minlength=30).clamp(min=1)
inputs = torch.stack([usual[road], count[road], hour], dim=1)
learn = DataLoader(TensorDataset(inputs[seen], delay[seen]), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(3, 10), nn.Tanh(), nn.Linear(10, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(3):
    for known, late in learn:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(known), late).backward()
        optimizer.step()
    with torch.no_grad():
        print(nn.functional.mse_loss(model(inputs[unseen]), delay[unseen]).item())
