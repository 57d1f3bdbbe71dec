import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Curves(Dataset):
    def __init__(self, count):
        self.phases = torch.linspace(0, 6, count)

    def __len__(self):
        return len(self.phases)

    def __getitem__(self, index):
        t = torch.linspace(0, 1, 32)
        return torch.sin(6 * t + self.phases[index]), self.phases[index].cos().reshape(1)


torch.manual_seed(0)
loader = DataLoader(Curves(64), batch_size=8, shuffle=True, num_workers=2)  # <- TS104
model = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(8):
    for curves, targets in loader:
        loss = nn.functional.mse_loss(model(curves), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
