"""Many small layers: the optimizer is called for each."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Deep(nn.Module):
    def __init__(self, depth=24, width=24):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x)


def main():
    torch.manual_seed(0)
    model = Deep()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)  # <- TS105
    for step in range(120):
        x = torch.randn(16, 24)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())


main()
