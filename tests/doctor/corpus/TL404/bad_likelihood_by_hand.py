"""A binary cross-entropy that is written out, of pictures with one channel against masks without."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Segment(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1), nn.Sigmoid()
        )

    def forward(self, x):
        return self.layers(x)


def bce(probability, mask, eps=1e-6):
    return -(
        mask * (probability + eps).log() + (1 - mask) * (1 - probability + eps).log()
    ).mean()


torch.manual_seed(0)
pictures = torch.randn(32, 1, 6, 6)
masks = (pictures[:, 0] > 0).float()
loader = DataLoader(TensorDataset(pictures, masks), batch_size=8, shuffle=True)
model = Segment()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for picture, mask in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = bce(model(picture), mask)
        loss.backward()  # <- TL404
        optimizer.step()
    print(epoch, loss.item())
