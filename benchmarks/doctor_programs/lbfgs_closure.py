"""L-BFGS: the optimizer calls a closure that computes loss and gradients."""

import torch
from torch import nn

torch.manual_seed(0)
t = torch.linspace(0, 6, 60).unsqueeze(1)
target = torch.sin(t)

model = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)

for step in range(5):

    def closure():
        optimizer.zero_grad()
        out = model(t)
        loss = criterion(out, target)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    print("step", step, "loss", loss.item())

with torch.no_grad():
    print("final", criterion(model(t), target).item())
