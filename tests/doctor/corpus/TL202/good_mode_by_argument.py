"""The modules take their mode as an argument of the call."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.dropout = nn.Linear(4, 8), nn.Dropout(0.5)

    def forward(self, x, training=False):
        x = torch.relu(self.fc(x))
        return self.dropout(x) if training else x


class Fused(nn.Module):
    def __init__(self, encoders):
        super().__init__()
        self.encoders, self.out = nn.ModuleList(encoders), nn.Linear(16, 2)

    def forward(self, parts, training=False):
        hidden = [e(x, training=training) for e, x in zip(self.encoders, parts)]
        return self.out(torch.cat(hidden, 1))


def fit(encoders, train_dataloader, valid_dataloader):
    net = Fused(encoders)
    optim = torch.optim.Adam(net.parameters())
    for ep in range(3):
        for *parts, y in train_dataloader:
            optim.zero_grad()
            nn.functional.cross_entropy(net(parts, training=True), y).backward()
            optim.step()
        with torch.no_grad():
            total = 0.0
            for *parts, y in valid_dataloader:
                loss = nn.functional.cross_entropy(net(parts, training=False), y, reduction="sum")
                total += loss.item()
            print(total)


data = TensorDataset(torch.randn(24, 4), torch.randn(24, 4), torch.randint(0, 2, (24,)))
fit([Encoder(), Encoder()], DataLoader(data, 8, shuffle=True), DataLoader(data, 8))
