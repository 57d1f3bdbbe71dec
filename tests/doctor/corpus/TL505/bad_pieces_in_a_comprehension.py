"""One update from four pieces, each with a batch and a backward of its own; no mean is divided."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


class LargeBatch:
    def __init__(self, model, stream, pieces):
        self.model, self.stream, self.pieces = model, stream, pieces
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def piece(self):
        inputs, targets = next(self.stream)
        loss = nn.functional.cross_entropy(self.model(inputs), targets)
        loss.backward()  # <- TL505
        return loss.item()

    def update(self):
        self.optimizer.zero_grad()
        losses = [self.piece() for _ in range(self.pieces)]
        self.optimizer.step()
        return sum(losses) / self.pieces


torch.manual_seed(0)
inputs = torch.randn(320, 8)
data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
trainer = LargeBatch(model, endless(loader), 4)
for epoch in range(3):
    print(epoch, sum(trainer.update() for _ in range(5)) / 5)
