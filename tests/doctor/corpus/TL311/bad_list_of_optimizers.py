import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, optimizers, loader):
    head_optimizer, model_optimizer = optimizers
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        head_optimizer.step()
        model_optimizer.step()
        model.zero_grad()
    return loss.item()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,))), 8, shuffle=True)
optimizers = [
    torch.optim.SGD(model[2].parameters(), lr=0.1),
    torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),  # <- TL311
]
for epoch in range(2):
    print(train(model, optimizers, loader))
