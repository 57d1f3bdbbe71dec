import torch
import torch.nn as nn


class Gate(nn.Module):
    def __init__(self, dim, dtype=torch.bfloat16):
        super().__init__()
        self.project = nn.Linear(dim, dim)
        self.alpha = torch.nn.Parameter(torch.zeros(dim)).to(dtype=torch.bfloat16)  # <- TL307
        self.beta = torch.nn.Parameter(torch.ones(dim, dtype=torch.float32))

    def forward(self, x):
        return torch.sigmoid(self.project(x) + self.alpha.float()) * x * self.beta


def fit(steps=6):
    torch.manual_seed(0)
    gate = Gate(6)
    optimizer = torch.optim.Adam(gate.parameters(), lr=1e-2)
    x = torch.randn(32, 6)
    for step in range(steps):
        optimizer.zero_grad()
        loss = (gate(x) - x.relu()).pow(2).mean()
        loss.backward()
        optimizer.step()
    return len(list(gate.parameters())), loss.item()


if __name__ == "__main__":
    print("%d parameters, loss %.4f" % fit())
