"""Each piece of an update goes back through its own head, on the one batch of the update."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


class LargeBatch:
    def __init__(self, model, stream, pieces):
        self.model, self.stream, self.pieces = model, stream, pieces
        self.heads = nn.ModuleList(nn.Linear(2, 2) for _ in range(pieces))
        parameters = [*model.parameters(), *self.heads.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=0.02, momentum=0.9)

    def piece(self, number):
        inputs, targets = self.batch
        loss = nn.functional.cross_entropy(self.heads[number](self.model(inputs)), targets)
        loss.backward()
        return loss.item()

    def update(self):
        self.optimizer.zero_grad()
        self.batch = next(self.stream)
        losses = [self.piece(number) for number in range(self.pieces)]
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
