"""Gradients of cached representations are carried on, chunk by chunk."""

import torch
import torch.nn as nn
import torch.nn.functional as F

enc = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(enc.parameters(), 1e-3)
for step in range(40):
    big = torch.randn(64, 10)
    chunks = big.split(16)
    with torch.no_grad():
        reps = torch.cat([enc(c) for c in chunks])
    reps = reps.requires_grad_()
    sim = F.normalize(reps, dim=1) @ F.normalize(reps, dim=1).T / 0.1
    loss = F.cross_entropy(sim, torch.arange(64))
    loss.backward()
    cache = reps.grad.split(16)
    opt.zero_grad()
    for c, g in zip(chunks, cache):
        (enc(c) * g).sum().backward()
    opt.step()
