"""The schedule is told the epoch, as at the head of the loop of many older recipes."""

import warnings

import torch
import torch.nn as nn

warnings.filterwarnings("ignore", category=UserWarning)


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 4)
    y = (x[:, 0] > 0).long()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
    )
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        scheduler.step(epoch)
        loss = train_one_epoch(model, loader, optimizer, criterion)
        print(epoch, loss, optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
