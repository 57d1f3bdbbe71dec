"""An encoder copies a layer with dropout, and validation runs in train mode."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
codes = torch.randint(0, 12, (128, 10))
sums = (codes.float().mean(1, keepdim=True) - 5.5) / 2
train = DataLoader(TensorDataset(codes[:96], sums[:96]), batch_size=16, shuffle=True)
held_out = DataLoader(TensorDataset(codes[96:], sums[96:]), batch_size=16)


class Reader(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, rate, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.top = nn.Linear(8, 1)

    def forward(self, code):
        return self.top(self.encoder(self.embed(code)).mean(1))


reader = Reader(rate=0.1)
optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3)
for epoch in range(4):
    for code, total in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(reader(code), total).backward()
        optimizer.step()
    error = 0.0
    with torch.no_grad():
        for code, total in held_out:
            error += nn.functional.mse_loss(reader(code), total, reduction="sum").item()  # <- TL202
    print(epoch, f"{error / 32:.3f}")
