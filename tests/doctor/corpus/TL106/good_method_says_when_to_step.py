"""A method decides from the batch's number whether a window ends; the last one is shorter."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Windows:
    def __init__(self, batches, size):
        self.batches, self.size = batches, size

    def share(self, number):
        first = number // self.size * self.size
        return 1.0 / (min(first + self.size, self.batches) - first)

    def is_over(self, number):
        if number == self.batches:
            return True
        return number % self.size == 0


torch.manual_seed(0)
x = torch.randn(176, 5)
loader = DataLoader(TensorDataset(x, x @ torch.randn(5, 2)), batch_size=16, shuffle=True)
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
windows = Windows(len(loader), 4)
for epoch in range(3):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets) * windows.share(number)
        loss.backward()
        if windows.is_over(number + 1):
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
