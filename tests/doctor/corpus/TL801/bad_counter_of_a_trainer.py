"""A trainer counts its updates in an attribute, which comes back from the file with the weights."""
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, net, folder):
        self.net = net
        self.path = os.path.join(folder, "trainer.pt")
        self.optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
        self.updates = 0

    def save(self):
        torch.save({"weights": self.net.state_dict(), "updates": self.updates}, self.path)

    def restore(self):
        found = torch.load(self.path, weights_only=True)
        self.net.load_state_dict(found["weights"])  # <- TL801
        self.updates = found["updates"]

    def fit(self, loader, until):
        while self.updates < until:
            for x, y in loader:
                self.optimizer.zero_grad()
                nn.functional.l1_loss(self.net(x), y).backward()
                self.optimizer.step()
                self.updates += 1
            self.save()


x = torch.randn(32, 3)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
with tempfile.TemporaryDirectory() as where:
    Trainer(nn.Linear(3, 1), where).fit(loader, until=4)
    again = Trainer(nn.Linear(3, 1), where)
    again.restore()
    again.fit(loader, until=8)
