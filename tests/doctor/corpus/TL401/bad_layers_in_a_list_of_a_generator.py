"""Layers by their names in a configuration, made into a list first."""

import torch
import torch.nn as nn

CONFIG = {"sizes": (6, 16, 4), "hidden": "Tanh", "output": "Softmax"}


class Mlp(nn.Module):
    def __init__(self, sizes, hidden, output):
        super().__init__()
        layers = [*self._layers(sizes, hidden), getattr(nn, output)(dim=1)]
        self.layers = nn.ModuleList(layers)

    @staticmethod
    def _layers(sizes, hidden):
        first = True
        for inputs, outputs in zip(sizes[:-1], sizes[1:]):
            if not first:
                yield getattr(nn, hidden)()
            first = False
            yield nn.Linear(inputs, outputs)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    torch.manual_seed(0)
    model = Mlp(**CONFIG)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(64, 6)
    y = x[:, :4].argmax(1)
    for epoch in range(2):
        for start in range(0, 64, 16):
            scores = model(x[start : start + 16])
            loss = nn.functional.cross_entropy(scores, y[start : start + 16])  # <- TL401
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
