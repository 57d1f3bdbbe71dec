import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        weights = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5, dim=-1)
        return self.head((weights @ self.v(x)).mean(1)), weights


torch.manual_seed(0)
# Eight steps of time, and batches of eight.
data = TensorDataset(torch.randn(96, 8, 8), torch.randint(0, 3, (96,)))
loader = DataLoader(data, 8, shuffle=True)
model = Attention()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        logits, weights = model(x)
        spread = -(weights * torch.log(weights + 1e-9)).sum(-1).mean()
        loss = F.cross_entropy(logits, y) + 0.01 * spread
        (loss / 2).backward()
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
