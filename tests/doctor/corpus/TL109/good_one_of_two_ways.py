"""With a scaler on the GPU and without it elsewhere: one of the two."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--precision", choices=("fp16", "fp32"), default="fp32")
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), 8, shuffle=True)
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler(device) if args.precision == "fp16" else None

for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast(device, dtype=torch.float16, enabled=scaler is not None):
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
    if args.precision == "fp32":
        optimizer.step()
