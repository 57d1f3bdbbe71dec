"""Both phases step what the trainer was given first; the second phase has an optimizer of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, encoder, head):
        self.encoder, self.head = encoder, head
        self.net = nn.Sequential(encoder, head)
        self.give(head, 0.1)
        self.annealing = torch.optim.lr_scheduler.StepLR(self.opt, step_size=2, gamma=0.5)

    def give(self, part, lr):
        self.opt = torch.optim.SGD(part.parameters(), lr=lr, momentum=0.9)

    def run(self, loader, epochs):
        for _ in range(epochs):
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.annealing.step()


torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 5), torch.randint(3, (96,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
trainer = Trainer(nn.Sequential(nn.Linear(5, 8), nn.ReLU()), nn.Linear(8, 3))
trainer.encoder.requires_grad_(False)
trainer.run(loader, epochs=3)
trainer.encoder.requires_grad_(True)
trainer.give(trainer.net, 0.01)  # <- TL607
trainer.run(loader, epochs=4)
