import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tokens = torch.randint(0, 1000, (80, 12))
loader = DataLoader(TensorDataset(tokens, tokens[:, 0] % 2), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Embedding(1000, 8), nn.Flatten(), nn.Linear(96, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
