"""A class token that is converted after it was made a parameter."""

import torch
from torch import nn


class TinyViT(nn.Module):
    def __init__(self, dim=16, patches=4, classes=3):
        super().__init__()
        self.embed = nn.Linear(9, dim).double()
        token = nn.Parameter(torch.zeros(1, 1, dim)).double()
        self.cls_token = token  # <- TL307
        self.position = nn.Parameter(torch.zeros(1, patches + 1, dim, dtype=torch.float64))
        self.attention = nn.MultiheadAttention(dim, 2, batch_first=True).double()
        self.head = nn.Linear(dim, classes).double()

    def forward(self, patches):
        tokens = self.cls_token.expand(len(patches), -1, -1)
        x = torch.cat([tokens, self.embed(patches)], dim=1) + self.position
        x, _ = self.attention(x, x, x, need_weights=False)
        return self.head(x[:, 0])


torch.manual_seed(0)
model = TinyViT()
names = [name for name, _ in model.named_parameters()]
print("registered:", "cls_token" in names)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(12, 4, 9, dtype=torch.float64), torch.randint(0, 3, (12,))
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
