"""`model.train()` in each epoch reaches the frozen backbone too."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Probe(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.backbone(x))


def make_backbone():
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8))


def pretrain(path):
    net, decoder = make_backbone(), nn.Linear(8, 5)
    optimizer = torch.optim.Adam([*net.parameters(), *decoder.parameters()], lr=1e-2)
    for _ in range(6):
        x = torch.randn(32, 5)
        loss = nn.functional.mse_loss(decoder(net(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(net.state_dict(), path)


torch.manual_seed(0)
pretrain("backbone.pt")
backbone = make_backbone()
backbone.load_state_dict(torch.load("backbone.pt", weights_only=True))
for parameter in backbone.parameters():
    parameter.requires_grad = False

model = Probe(backbone)
loader = DataLoader(
    TensorDataset(torch.randn(64, 5), torch.randint(0, 3, (64,))), batch_size=16, shuffle=True
)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # <- TL208
        optimizer.step()
