"""A part of the model keeps its batch norm in eval mode, whoever calls `train()` on the whole."""
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())

    def train(self, mode=True):
        super().train(mode)
        self.layers.eval()
        return self

    def forward(self, x):
        return self.layers(x)


class Classifier(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.encoder(x))


torch.manual_seed(0)
x = torch.randn(160, 6)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
torch.save(Encoder().state_dict(), "encoder.pt")
encoder = Encoder()
encoder.load_state_dict(torch.load("encoder.pt", weights_only=True))
encoder.requires_grad_(False)
model = Classifier(encoder)
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    for rows in torch.randperm(len(x)).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
