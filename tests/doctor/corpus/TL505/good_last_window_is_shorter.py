"""Ten micro-batches in windows of three: the losses of the last window are divided by its own length."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
torch.set_num_threads(1)
EVERY = 3
x = torch.randn(320, 5)
data = TensorDataset(x, x.sum(dim=1, keepdim=True))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def finish_window():
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


for epoch in range(3):
    rest = len(loader) % EVERY
    whole = len(loader) - rest
    for number, (inputs, targets) in enumerate(loader, start=1):
        length = EVERY if number <= whole else rest
        loss = nn.functional.mse_loss(model(inputs), targets) / length
        loss.backward()
        if number % EVERY == 0 or number == len(loader):
            finish_window()
    print(epoch, loss.item() * length)
