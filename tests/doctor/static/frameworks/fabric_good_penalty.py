import torch
from lightning.fabric import Fabric
from torch import nn

fabric = Fabric()
judge = nn.Linear(2, 1)
opt = torch.optim.Adam(judge.parameters(), lr=1e-4)
judge, opt = fabric.setup(judge, opt)
points = torch.utils.data.TensorDataset(torch.randn(320, 2))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(points, batch_size=32, shuffle=True))
for (real,) in loader:
    real.requires_grad_(True)
    score = judge(real)
    (slope,) = torch.autograd.grad(score.sum(), real, create_graph=True)
    loss = -score.mean() + (slope.norm(dim=1) - 1).square().mean()
    opt.zero_grad()
    fabric.backward(loss)
    fabric.clip_gradients(judge, opt, max_norm=float("inf"), error_if_nonfinite=True)
    opt.step()
