import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


def train(model, train_loader, optimizer, scheduler, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- TL602
    print(f"Epoch {epoch} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.3g}")


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    x = torch.randn(256, 16)
    y = x[:, :5].argmax(dim=1)
    train_loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 5))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, 6):
        train(model, train_loader, optimizer, scheduler, epoch)


if __name__ == "__main__":
    main()
