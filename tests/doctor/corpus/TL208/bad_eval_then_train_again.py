"""The encoder is put into eval mode once; the next line, `train()` of the whole, undoes it."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(2, 6, 3, padding=1), nn.BatchNorm1d(6), nn.ReLU(), nn.AdaptiveAvgPool1d(1)
        )
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(self.encoder(x).flatten(1))


old = Classifier()
old_optimizer = torch.optim.SGD(old.parameters(), lr=0.05)
for _ in range(5):
    old_optimizer.zero_grad()
    F.cross_entropy(old(torch.randn(16, 2, 9)), torch.randint(0, 4, (16,))).backward()
    old_optimizer.step()

net = Classifier()
net.encoder.load_state_dict(old.encoder.state_dict())
net.encoder.requires_grad_(False)
net.encoder.eval()
net.train()
signals, classes = torch.randn(80, 2, 9), torch.randint(0, 4, (80,))
optimizer = torch.optim.AdamW(net.fc.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(80).split(16):
        loss = F.cross_entropy(net(signals[rows]), classes[rows])  # <- TL208
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
