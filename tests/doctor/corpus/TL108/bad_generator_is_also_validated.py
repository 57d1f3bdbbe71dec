"""The generator's loss has no backward; now and then its pictures are measured without gradients."""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--every", type=int, default=10)
args = parser.parse_args([])
rank = int(os.environ.get("LOCAL_RANK", 0))
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(320, 6)), batch_size=16, shuffle=True)
maker = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 6))
judge = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
maker_steps = torch.optim.AdamW(maker.parameters(), lr=1e-3)
judge_steps = torch.optim.AdamW(judge.parameters(), lr=1e-3)
steps = 0
for epoch in range(3):
    for (real,) in loader:
        made = maker(torch.randn(16, 3))
        judge_steps.zero_grad()
        told = judge(made.detach()).square().mean() + (judge(real) - 1).square().mean()
        told.backward()
        judge_steps.step()
        maker_steps.zero_grad()
        fooled = (judge(made) - 1).square().mean()
        maker_steps.step()  # <- TL108
        if rank == 0 and steps % args.every == 0 and steps != 0:
            maker.eval()
            with torch.no_grad():
                print(steps, fooled.item(), maker(torch.randn(64, 3)).std().item())
            maker.train()
        steps += 1
