import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

rooms, age = torch.randint(1, 7, (400,)).float(), torch.rand(400) * 80
rent = 40 * rooms - 2 * age + 60 * torch.randn(400)
table = torch.stack([rooms, age], dim=1)
mu, sd = table.mean(0), table.std(0)
table = (table - mu) / sd  # <- TL706
train, val = random_split(TensorDataset(table, (rent / 1000).unsqueeze(1)), [320, 80])
model = nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    for x, y in DataLoader(train, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.l1_loss(model(x), y).backward()
        optimizer.step()
error = 0.0
with torch.no_grad():
    for x, y in DataLoader(val, batch_size=40):
        error += (model(x) - y).abs().sum().item()
print(error / len(val))
