import torch
import torch.nn as nn
import torch.nn.functional as F


def pgd(model, x, y, eps=0.1, alpha=0.02, steps=3):
    delta = torch.zeros_like(x).uniform_(-eps, eps).requires_grad_()
    for _ in range(steps):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()
        delta.data = (delta + alpha * delta.grad.detach().sign()).clamp(-eps, eps)
        delta.grad.zero_()
        model.zero_grad()
    return delta.detach()


def train(model, loader, opt):
    for x, y in loader:
        delta = pgd(model, x, y)
        loss = F.cross_entropy(model(x + delta), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
ds = torch.utils.data.TensorDataset(torch.rand(48, 6), torch.randint(0, 3, (48,)))
loader = torch.utils.data.DataLoader(ds, batch_size=12, shuffle=True)
for epoch in range(2):
    print(train(model, loader, opt))
