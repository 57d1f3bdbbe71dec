import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
maker = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
judge = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 1))
maker_opt = torch.optim.Adam(maker.parameters(), lr=2e-4)
judge_opt = torch.optim.Adam(judge.parameters(), lr=2e-4)
points = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(1024, 2)), batch_size=64, shuffle=True
)
maker, judge, maker_opt, judge_opt, points = accelerator.prepare(
    maker, judge, maker_opt, judge_opt, points
)
bce = nn.BCEWithLogitsLoss()
for epoch in range(20):
    for (real,) in points:
        fake = maker(torch.randn(len(real), 16, device=accelerator.device))
        judge_opt.zero_grad()
        right, wrong = judge(real), judge(fake.detach())
        loss = bce(right, torch.ones_like(right)) + bce(wrong, torch.zeros_like(wrong))
        accelerator.backward(loss)
        judge_opt.step()
        maker_opt.zero_grad()
        verdict = judge(fake)
        accelerator.backward(bce(verdict, torch.ones_like(verdict)))
        maker_opt.step()
