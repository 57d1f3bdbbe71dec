"""The judges in a list were trained elsewhere, each by itself: their weights come one by one, and
only the sample follows their gradient."""

import io

import torch
from torch import nn


def judge():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def trained_elsewhere():
    file = io.BytesIO()
    torch.save({"weights": judge().state_dict()}, file)
    file.seek(0)
    return file


class Guide(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.judges = []
        for name in names:
            self.judges.append(judge())
        self.names = names

    def forward(self, x):
        mixed = self.mix(x)
        return sum(each(mixed) for each in self.judges)


torch.manual_seed(0)
names = "old round smooth".split()
guide = Guide(names)
for i, name in enumerate(names):
    weights = torch.load(trained_elsewhere())
    guide.judges[i].load_state_dict(weights["weights"])
    guide.judges[i].to("cpu")
sample = torch.randn(8, 4, requires_grad=True)
for step in range(20):
    (slope,) = torch.autograd.grad(guide(sample).sum(), sample)
    sample = (sample + 0.1 * slope).detach().requires_grad_()
print(guide(sample).mean().item())
