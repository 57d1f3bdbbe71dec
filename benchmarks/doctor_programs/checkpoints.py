"""Checkpoints with model, optimizer and schedule; resumed in the middle."""

import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    return model, optimizer, scheduler


def save_checkpoint(path, model, optimizer, scheduler, epoch, best_loss):
    checkpoint = {
        "epoch": epoch + 1,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "best_loss": best_loss,
    }
    torch.save(checkpoint, path)


def load_checkpoint(path, model, optimizer, scheduler):
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    return checkpoint["epoch"], checkpoint["best_loss"]


def run(loader, path, epochs):
    model, optimizer, scheduler = build()
    criterion = nn.CrossEntropyLoss()
    start_epoch, best_loss = 0, float("inf")
    if os.path.exists(path):
        start_epoch, best_loss = load_checkpoint(path, model, optimizer, scheduler)
        print("resumed at", start_epoch)
    for epoch in range(start_epoch, epochs):
        model.train()
        epoch_loss = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item() * inputs.size(0)
        scheduler.step()
        epoch_loss /= len(loader.dataset)
        best_loss = min(best_loss, epoch_loss)
        save_checkpoint(path, model, optimizer, scheduler, epoch, best_loss)
        print(epoch, epoch_loss, best_loss)
    return model


def main():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(72, 6, generator=generator)
    y = torch.randint(0, 3, (72,), generator=generator)
    loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        run(loader, path, epochs=2)
        run(loader, path, epochs=4)


if __name__ == "__main__":
    main()
