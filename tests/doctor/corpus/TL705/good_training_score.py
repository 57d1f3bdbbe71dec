"""The score on the training data is asked for beside the one on validation data."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
x = torch.randn(100, 4)
train_set, val_set = random_split(TensorDataset(x, x.sum(1, keepdim=True)), [80, 20])
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
train_eval_loader = DataLoader(train_set, batch_size=40)
val_loader = DataLoader(val_set, batch_size=20)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


@torch.no_grad()
def evaluate(loader):
    model.eval()
    total = sum(nn.functional.mse_loss(model(a), b).item() * len(a) for a, b in loader)
    return total / len(loader.dataset)


for epoch in range(3):
    model.train()
    for a, b in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(a), b).backward()
        optimizer.step()
    print(epoch, evaluate(train_eval_loader), evaluate(train_loader), evaluate(val_loader))
