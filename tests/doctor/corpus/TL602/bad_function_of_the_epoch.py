"""The function counts epochs, and is asked after every batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 6


def factor(epoch):
    if epoch < 2:
        return (epoch + 1) / 2
    return max(0.0, (EPOCHS - epoch) / (EPOCHS - 2))


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 5), torch.randint(0, 2, (64,)))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = nn.Linear(5, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=factor)
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()  # <- TL602
        print(epoch, loss.item(), scheduler.get_last_lr())


main()
