"""Ensemble in probability space: average the softmaxes, then take the log."""

import torch
from torch import nn
from torch.nn import functional as F


class Ensemble(nn.Module):
    def __init__(self, members=3, dim=8, classes=3):
        super().__init__()
        self.members = nn.ModuleList(nn.Linear(dim, classes) for _ in range(members))

    def forward(self, x):
        probs = torch.stack([F.softmax(member(x), dim=1) for member in self.members])
        return probs.mean(dim=0)


def train(model, loader, optimizer, criterion, epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            probs = model(x)
            loss = criterion(torch.log(probs), y)
            single = torch.softmax(model.members[0](x), dim=1)
            loss = loss + 0.1 * criterion(single.clamp_min(1e-6).log(), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(96, 8)
    y = x[:, :3].argmax(dim=1)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True
    )
    model = Ensemble()
    train(model, loader, torch.optim.Adam(model.parameters(), lr=1e-2), nn.NLLLoss(), epochs=3)


if __name__ == "__main__":
    main()
