import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(model, loader, optimizer, scheduler, epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(epoch, loss.item(), scheduler.get_last_lr())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(160, 8)
    y = x[:, :2].argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    backbone, head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 2)
    model = nn.Sequential(backbone, head)

    for parameter in backbone.parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    fit(model, loader, optimizer, scheduler, epochs=3)

    for parameter in backbone.parameters():
        parameter.requires_grad = True
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    fit(model, loader, optimizer, scheduler, epochs=4)


if __name__ == "__main__":
    main()
