import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

WORKERS = 2


class AddNoise:
    def __init__(self, std, seed=0):
        self.std = std
        self.generator = torch.Generator()  # <- TL701
        self.generator.manual_seed(seed)

    def __call__(self, x):
        return x + self.std * torch.randn(x.shape, generator=self.generator)


class Signals(Dataset):
    def __init__(self, signals, targets, transform=None):
        self.signals = signals
        self.targets = targets
        self.transform = transform

    def __len__(self):
        return self.signals.size(0)

    def __getitem__(self, idx):
        signal = self.signals[idx]
        if self.transform is not None:
            signal = self.transform(signal)
        return {"signal": signal, "target": self.targets[idx]}


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    running, seen = 0.0, 0
    for batch in loader:
        optimizer.zero_grad()
        output = model(batch["signal"])
        loss = criterion(output, batch["target"])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(output)
        seen += len(output)
    return running / seen


if __name__ == "__main__":
    torch.manual_seed(3)
    signals = torch.randn(40, 8)
    train_data = Signals(signals, signals.mean(dim=1, keepdim=True), transform=AddNoise(0.1))
    train_loader = DataLoader(train_data, batch_size=10, shuffle=True, num_workers=WORKERS)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 3):
        print(epoch, train_one_epoch(model, train_loader, optimizer, nn.MSELoss()))
