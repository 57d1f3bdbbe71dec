"""A function decides from the batch's number whether a window ends; nothing divides by its size."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EVERY = 4


def ends_window(number, batches):
    """Every fourth batch, and the last one of the epoch."""
    if (number + 1) % EVERY == 0:
        return True
    return number + 1 == batches


torch.manual_seed(0)
x = torch.randn(192, 5)
loader = DataLoader(TensorDataset(x, x @ torch.randn(5, 2)), batch_size=16, shuffle=True)
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(3):
    for number, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()  # <- TL505
        if ends_window(number, len(loader)):
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
