import torch
from lightning.fabric import Fabric
from torch import nn

fabric = Fabric()
maker, judge = nn.Linear(8, 2), nn.Linear(2, 1)
maker_opt = torch.optim.Adam(maker.parameters(), lr=1e-4)
judge_opt = torch.optim.Adam(judge.parameters(), lr=1e-4)
maker, maker_opt = fabric.setup(maker, maker_opt)
judge, judge_opt = fabric.setup(judge, judge_opt)
points = torch.utils.data.TensorDataset(torch.randn(320, 2))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(points, batch_size=32, shuffle=True))
for (real,) in loader:
    fake = maker(torch.randn(len(real), 8))
    gap = judge(fake.detach()).mean() - judge(real).mean()
    judge_opt.zero_grad()
    fabric.backward(gap)
    judge_opt.step()
    maker_opt.zero_grad()
    fabric.backward(-judge(fake).mean())
    maker_opt.step()
