import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, MultiStepLR, StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
epochs = 4
x = torch.randn(192, 5)
y = x.sum(dim=1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
steps = len(loader)


def build(kind, optimizer):
    if kind == "cosine":
        return CosineAnnealingLR(optimizer, T_max=epochs * steps)
    if kind == "milestones":
        return MultiStepLR(optimizer, milestones=[2 * steps, 3 * steps], gamma=0.1)
    return StepLR(optimizer, step_size=steps, gamma=0.5)


for kind in ["cosine", "milestones", "step"]:
    model = nn.Linear(5, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = build(kind, optimizer)
    for epoch in range(epochs):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print(kind, epoch, loss.item(), scheduler.get_last_lr()[0])
