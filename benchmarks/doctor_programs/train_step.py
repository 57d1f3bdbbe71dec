"""A step function made by a factory: closures, callbacks, loss history."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def make_train_step_fn(model, loss_fn, optimizer):
    def perform_train_step_fn(x, y):
        model.train()
        yhat = model(x)
        loss = loss_fn(yhat, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return perform_train_step_fn


def make_val_step_fn(model, loss_fn):
    def perform_val_step_fn(x, y):
        model.eval()
        with torch.no_grad():
            yhat = model(x)
            loss = loss_fn(yhat, y)
        return loss.item()

    return perform_val_step_fn


def mini_batch(device, data_loader, step_fn):
    total, count = 0.0, 0
    for x_batch, y_batch in data_loader:
        x_batch = x_batch.to(device)
        y_batch = y_batch.to(device)
        total += step_fn(x_batch, y_batch) * len(x_batch)
        count += len(x_batch)
    return total / count


def main():
    torch.manual_seed(13)
    device = "cpu"
    x = torch.rand(100, 3)
    y = 1 + 2 * x.sum(dim=1, keepdim=True) + 0.1 * torch.randn(100, 1)
    train_loader = DataLoader(TensorDataset(x[:80], y[:80]), batch_size=16, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[80:], y[80:]), batch_size=16)

    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1)).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    loss_fn = nn.MSELoss(reduction="mean")

    train_step_fn = make_train_step_fn(model, loss_fn, optimizer)
    val_step_fn = make_val_step_fn(model, loss_fn)

    losses, val_losses = [], []
    for epoch in range(4):
        loss = mini_batch(device, train_loader, train_step_fn)
        losses.append(loss)
        val_loss = mini_batch(device, val_loader, val_step_fn)
        val_losses.append(val_loss)
        print(epoch, loss, val_loss)


if __name__ == "__main__":
    main()
