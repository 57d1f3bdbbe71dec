"""A network in eval mode whose inputs get gradients: what each prediction hangs on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 3))
net.eval()
for (x,) in DataLoader(TensorDataset(torch.randn(40, 6)), batch_size=8):
    x.requires_grad_(True)
    best = net(x).max(dim=1).values
    (share,) = torch.autograd.grad(best.sum(), x)
    print(share.abs().mean().item())
