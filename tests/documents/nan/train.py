import torch
from torch import nn


class Pooling(nn.Module):
    def forward(self, scores, mask):
        return scores.masked_fill(~mask, float("-inf")).softmax(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.pool, self.head = nn.Linear(8, 6), Pooling(), nn.Linear(6, 1)

    def forward(self, x, mask):
        return self.head(self.pool(self.score(x), mask))


torch.set_num_threads(1)
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for step in range(80):
    x, y, mask = torch.randn(10, 8), torch.randn(10, 1), torch.ones(10, 6, dtype=torch.bool)
    if step == 60:
        mask[4] = False
    loss = nn.functional.mse_loss(model(x, mask), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
