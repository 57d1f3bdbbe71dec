import torch
import torch.nn as nn


def train_one_epoch(model, loader, criterion, optimizer, accumulation_steps):
    model.train()
    for i, (images, labels) in enumerate(loader):
        optimizer.zero_grad()  # <- TL508
        loss = criterion(model(images), labels) / accumulation_steps
        loss.backward()
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
            optimizer.step()


def main():
    torch.manual_seed(0)
    ds = torch.utils.data.TensorDataset(torch.randn(64, 3, 4, 4), torch.randint(0, 4, (64,)))
    loader = torch.utils.data.DataLoader(ds, batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        train_one_epoch(model, loader, nn.CrossEntropyLoss(), optimizer, accumulation_steps=4)


if __name__ == "__main__":
    main()
