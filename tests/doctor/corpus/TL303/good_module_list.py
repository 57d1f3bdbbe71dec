"""The right containers; and plain lists whose layers are registered all the same."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Registered(nn.Module):
    def __init__(self, dim=8, depth=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(depth)])
        self.heads = nn.ModuleDict({"a": nn.Linear(dim, 2), "b": nn.Linear(dim, 2)})

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.heads["a"](x) + self.heads["b"](x)


class ByName(nn.Module):
    def __init__(self, dim=8, depth=2):
        super().__init__()
        self.blocks = []
        for i in range(depth):
            block = nn.Linear(dim, dim)
            setattr(self, f"block{i}", block)
            self.blocks.append(block)
        self.towers = [nn.Linear(dim, 2) for _ in range(2)]
        for i, tower in enumerate(self.towers):
            self.add_module(f"tower_{i}", tower)
        self.activations = [nn.ReLU(), nn.Tanh()]

    def forward(self, x):
        for block, activation in zip(self.blocks, self.activations):
            x = activation(block(x))
        return sum(tower(x) for tower in self.towers)


class LaterPacked(nn.Module):
    def __init__(self, sizes=(8, 16, 2)):
        super().__init__()
        self.parts = []
        for a, b in zip(sizes, sizes[1:]):
            self.parts += [nn.Linear(a, b), nn.ReLU()]
        self.net = nn.Sequential(*self.parts[:-1])
        self.linears = [part for part in self.net if isinstance(part, nn.Linear)]

    def forward(self, x):
        return self.net(x)

    def l2(self):
        return sum(linear.weight.pow(2).sum() for linear in self.linears)


torch.manual_seed(0)
x, y = torch.randn(40, 8), torch.randint(0, 2, (40,))
for model in (Registered(), ByName(), LaterPacked()):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if isinstance(model, LaterPacked):
            loss = loss + 1e-4 * model.l2()
        loss.backward()
        optimizer.step()
    print(type(model).__name__, loss.item())
