import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 3)
        self.decoder = nn.Linear(3, 8)

    def forward(self, x):
        return self.decoder(torch.relu(self.encoder(x)))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=8, shuffle=True)
model = Autoencoder()
slow = torch.optim.Adam(model.encoder.parameters(), lr=1e-4)
fast = torch.optim.Adam(model.parameters(), lr=1e-3)  # <- TL311

for epoch in range(2):
    for (x,) in loader:
        slow.zero_grad()
        fast.zero_grad()
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        slow.step()
        fast.step()
    print(epoch, loss.item())
