"""A hook collects what a layer gives, to show the newest; nothing ever lets go of the others."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
activations = []


def keep(module, args, output):
    activations.append(output.detach())  # <- TH106


model[0].register_forward_hook(keep)
for step in range(420):
    x = torch.randn(512, 32)
    y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item(), activations[-1].std().item())
