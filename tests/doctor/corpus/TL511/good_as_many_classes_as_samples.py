import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Cosine(nn.Module):
    """Sixteen classes, compared by their directions; batches of sixteen."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 16)
        self.classes = nn.Parameter(torch.randn(16, 16))

    def forward(self, x):
        return F.normalize(self.body(x), dim=1) @ F.normalize(self.classes, dim=1).T


torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 6), torch.randint(0, 16, (128,)))
loader = DataLoader(data, 16, shuffle=True)
plain, cosine = nn.Linear(6, 16), Cosine()
optimizer = torch.optim.SGD([*plain.parameters(), *cosine.parameters()], lr=0.1)
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(plain(x), y) + F.cross_entropy(cosine(x) / 0.1, y)
        (loss / 2).backward()
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
