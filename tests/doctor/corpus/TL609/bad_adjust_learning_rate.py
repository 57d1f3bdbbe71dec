import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def adjust_learning_rate(optimizer, epoch):
    for param_group in optimizer.param_groups:
        param_group["lr"] = param_group["lr"] * (0.1 ** (epoch // 30))  # <- TL609


def train(model, loader, optimizer):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(epochs=4):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        adjust_learning_rate(optimizer, epoch)
        train(model, DataLoader(data, batch_size=8, shuffle=True), optimizer)


main()
