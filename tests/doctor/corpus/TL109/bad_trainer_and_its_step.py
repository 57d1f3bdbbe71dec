import torch
import torch.nn.functional as F
from torch import nn


class Trainer:
    """The update steps, and so does the loop that calls it."""

    def __init__(self, net, lr):
        self.net = net
        self.optim = torch.optim.AdamW(net.parameters(), lr=lr)

    def update(self, x, y):
        self.optim.zero_grad()
        loss = F.mse_loss(self.net(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optim.step()
        return loss.item()

    def fit(self, batches, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in batches:
                total += self.update(x, y)
                self.optim.step()  # <- TL109
            print(f"epoch {epoch}: {total / len(batches):.3f}")


torch.manual_seed(3)
batches = [(torch.randn(8, 5), torch.randn(8, 1)) for _ in range(4)]
Trainer(nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1)), 1e-3).fit(batches, 2)
