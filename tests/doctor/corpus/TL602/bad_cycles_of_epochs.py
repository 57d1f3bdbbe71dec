"""Two cycles of six epochs make twelve, which a tick per batch uses up in the first one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def snapshots(model, optimizer, schedule, loader, cycles, epochs):
    kept = []
    for _ in range(cycles):
        for _ in range(epochs):
            for inputs, labels in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                schedule.step()  # <- TL602
        kept.append({name: value.clone() for name, value in model.state_dict().items()})
    return kept


def main():
    torch.manual_seed(1)
    inputs = torch.randn(144, 5)
    labels = (inputs[:, 0] > inputs[:, 4]).long()
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=16, shuffle=True)
    model = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
    print(len(snapshots(model, optimizer, schedule, loader, cycles=2, epochs=6)))


main()
