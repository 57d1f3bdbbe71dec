"""Mixed precision with a gradient scaler, unscaled before the clip."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_data():
    g = torch.Generator().manual_seed(3)
    inputs = torch.randn(96, 10, generator=g)
    targets = inputs[:, :3].sum(1, keepdim=True)
    return TensorDataset(inputs, targets)


def train_one_epoch(model, loader, criterion, optimizer, scaler, max_norm):
    model.train()
    losses = []
    for inputs, targets in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            outputs = model(inputs)
            loss = criterion(outputs.float(), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    loader = DataLoader(get_data(), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for epoch in range(3):
        loss = train_one_epoch(model, loader, criterion, optimizer, scaler, max_norm=0.3)
        print(epoch, loss)
    torch.save(model.state_dict(), "model.pt")


main()
