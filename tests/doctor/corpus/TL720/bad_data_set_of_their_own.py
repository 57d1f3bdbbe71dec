import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Curves(Dataset):
    def __init__(self, count):
        t = torch.linspace(0, 1, 10)
        a = torch.rand(count, 1)
        self.x, self.y = a * t + 0.02 * torch.randn(count, 10), a

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader.dataset)  # <- TL720


torch.manual_seed(0)
train = DataLoader(Curves(64), batch_size=16, shuffle=True)
test = DataLoader(Curves(32), batch_size=16)
model = nn.Linear(10, 1)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    print(run_epoch(model, train, optimizer), run_epoch(model, test))
