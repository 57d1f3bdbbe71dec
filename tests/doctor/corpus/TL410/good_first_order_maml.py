import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
meta = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(4):
    meta.zero_grad()
    losses = []
    for task in range(2):
        phase = 3.0 * torch.rand(1)
        support, query = torch.rand(8, 1), torch.rand(8, 1)
        names = dict(model.named_parameters())
        inner = F.mse_loss(functional_call(model, names, (support,)), torch.sin(support + phase))
        grads = torch.autograd.grad(inner, list(names.values()))
        fast = {key: w - 0.05 * g for (key, w), g in zip(names.items(), grads)}
        losses.append(F.mse_loss(functional_call(model, fast, (query,)), torch.sin(query + phase)))
    torch.stack(losses).mean().backward()
    meta.step()
