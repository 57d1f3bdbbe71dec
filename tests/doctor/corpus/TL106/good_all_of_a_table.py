"""One optimizer for each part, in a table: all are cleared, and all of them step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
spectra = torch.rand(160, 12).cumsum(1) / 12
loader = DataLoader(TensorDataset(spectra), batch_size=16, shuffle=True)
parts = nn.ModuleDict({
    "squeeze": nn.Sequential(nn.Linear(12, 4), nn.Tanh()),
    "unfold": nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 12)),
})
optimizers = {name: torch.optim.Adam(part.parameters(), lr=5e-3) for name, part in parts.items()}
for epoch in range(5):
    for (curve,) in loader:
        for each in optimizers.values():
            each.zero_grad()
        loss = nn.functional.mse_loss(parts["unfold"](parts["squeeze"](curve)), curve)
        loss.backward()
        for each in optimizers.values():
            each.step()
    print(epoch, f"{loss.item():.4f}")
