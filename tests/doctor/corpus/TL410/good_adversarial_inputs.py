import torch
from torch import nn
from torch.nn import functional as F


def perturb(model, x, y, eps=0.1, steps=2):
    moved = x.clone().detach()
    for _ in range(steps):
        moved.requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(model(moved), y)
        slope = torch.autograd.grad(loss, [moved])[0]
        moved = moved.detach() + eps * torch.sign(slope)
        moved = torch.min(torch.max(moved, x - eps), x + eps)
    return moved


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(24, 5), torch.randint(0, 3, (24,)))
for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
    clean = model(x)
    robust = F.kl_div(
        F.log_softmax(model(perturb(model, x, y)), dim=1),
        F.softmax(clean, dim=1),
        reduction="batchmean",
    )
    loss = F.cross_entropy(clean, y) + 6.0 * robust
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
