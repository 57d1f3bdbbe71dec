import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.q, self.dropout = nn.Linear(6, 6), dropout

    def forward(self, x):
        rate = self.dropout if self.training else 0.0
        plain = F.scaled_dot_product_attention(x, x, x, dropout_p=0.0, is_causal=True)
        return plain + F.scaled_dot_product_attention(self.q(x), x, x, dropout_p=rate)


torch.manual_seed(0)
model = Attention()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    x = torch.randn(2, 4, 6)
    optimizer.zero_grad()
    (model(x) - x.roll(1, 1)).pow(2).mean().backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(model(torch.randn(2, 4, 6)).std().item())
