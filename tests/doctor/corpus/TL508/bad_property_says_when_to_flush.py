"""A property says that the gradients are whole, after each batch has cleared those before it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Gradients:
    """Adds up the gradients of `count` batches."""

    def __init__(self, net, optimizer, count):
        self.net, self.optimizer, self.count = net, optimizer, count
        self.held = 0

    @property
    def whole(self):
        """As many batches as an update takes."""
        return self.held >= self.count

    def add(self, inputs, targets):
        self.net.zero_grad()  # <- TL508
        loss = nn.functional.l1_loss(self.net(inputs), targets) / self.count
        loss.backward()
        self.held += 1
        return loss.item()

    def flush(self):
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.held = 0


def main():
    torch.manual_seed(0)
    inputs = torch.randn(192, 7)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :2]), batch_size=8, shuffle=True)
    net = nn.Sequential(nn.Linear(7, 14), nn.ELU(), nn.Linear(14, 2))
    gradients = Gradients(net, torch.optim.RMSprop(net.parameters(), lr=1e-3), count=6)
    for epoch in range(3):
        shown = 0.0
        for x, y in loader:
            shown += gradients.add(x, y)
            if gradients.whole:
                gradients.flush()
        print(epoch, round(shown, 4))


main()
