import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(9, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, positions):
        return self.body(positions.flatten(1)).squeeze(-1)


def train(model, optimizer, frames):
    mse = nn.MSELoss()
    for positions, energies, forces in frames:
        positions.requires_grad_(True)
        energy = model(positions)
        predicted = -torch.autograd.grad(energy.sum(), positions, retain_graph=True)[0]  # <- TL410
        energy_loss = mse(energy, energies)
        force_loss = mse(predicted, forces)
        loss = energy_loss + 100.0 * force_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(24, 3, 3), torch.randn(24), torch.randn(24, 3, 3))
model = Potential()
train(
    model,
    torch.optim.Adam(model.parameters(), lr=1e-3),
    torch.utils.data.DataLoader(data, batch_size=6, shuffle=True),
)
