"""The features are cut off on their way to the head: the encoder does not learn."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(10, 32)  # <- TL304
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        features = torch.relu(self.encoder(x))
        return self.head(features.detach())


torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 10), torch.randint(0, 3, (160,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
