"""Two tasks on one network, each with its own update; the first is cleared for the second."""
import torch
from torch import nn

torch.manual_seed(0)
trunk, name, age = nn.Linear(5, 16), nn.Linear(16, 3), nn.Linear(16, 1)
model = nn.ModuleList([trunk, name, age])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
rows = torch.utils.data.TensorDataset(
    torch.randn(48, 5), torch.randint(0, 3, (48,)), torch.randn(48, 1)
)
for x, who, years in torch.utils.data.DataLoader(rows, batch_size=12, shuffle=True):
    optimizer.zero_grad()
    named = nn.functional.cross_entropy(name(trunk(x).relu()), who)
    named.backward()  # <- TL106
    optimizer.zero_grad()
    aged = nn.functional.mse_loss(age(trunk(x).relu()), years)
    aged.backward()
    optimizer.step()
print(named.item(), aged.item())
