"""The experts of a mixture are one expert, so that the gate has nothing to choose from."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixture(nn.Module):
    def __init__(self, experts=4, width=16):
        super().__init__()
        self.gate = nn.Linear(10, experts)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(10, width), nn.Linear(width, 3))] * experts  # <- TL313
        )

    def forward(self, x):
        weights = self.gate(x).softmax(dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (weights[..., None] * outputs).sum(dim=1)


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 10), torch.randint(0, 3, (96,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = Mixture()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
