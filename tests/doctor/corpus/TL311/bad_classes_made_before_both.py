"""The classifier is there when the optimizer of the whole encoder is made."""

import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
        self.classes = None

    def renew(self, count):
        if self.classes is None:
            self.classes = nn.Linear(12, count)
        self.classes.weight.data.uniform_(-0.3, 0.3)

    def forward(self, x):
        return self.classes(self.body(x))


encoder = Encoder()
encoder.renew(count=4)
of_all = torch.optim.Adam(encoder.parameters(), lr=2e-3)
of_classes = torch.optim.Adam(encoder.classes.parameters(), lr=1e-2)  # <- TL311
for _ in range(20):
    x, y = torch.randn(16, 6), torch.randint(0, 4, (16,))
    encoder.zero_grad()
    loss = nn.functional.cross_entropy(encoder(x), y)
    loss.backward()
    of_all.step()
    of_classes.step()
print(f"{loss.item():.3f}")
