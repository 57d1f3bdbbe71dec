import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, scheduler, epochs, schedule_type="epoch"):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if schedule_type == "batch":
                scheduler.step()
        if schedule_type == "epoch":
            scheduler.step()
        print(schedule_type, epoch, loss.item(), scheduler.get_last_lr())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    epochs = 3
    x = torch.randn(128, 4)
    y = (x[:, 0] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    for clock in ("batch", "epoch"):
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        length = epochs * len(loader) if clock == "batch" else epochs
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=length)
        train(model, loader, optimizer, scheduler, epochs, schedule_type=clock)


if __name__ == "__main__":
    main()
