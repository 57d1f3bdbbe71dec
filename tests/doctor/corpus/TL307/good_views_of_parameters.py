import torch
from torch import nn

# Tensors computed from parameters that are registered; and a parameter that stays a leaf.


class Tied(nn.Module):
    def __init__(self, vocab=20, dim=8):
        super().__init__()
        weight = nn.Parameter(torch.randn(vocab, dim) * 0.1)
        self.weight = weight
        self.start = weight.detach().clone().to("cpu")
        self.gain = nn.Parameter(torch.ones(dim)).requires_grad_(True)
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.bias.data = self.bias.data.to("cpu")

    def forward(self, tokens):
        h = self.weight[tokens].mean(1) * self.gain
        table = self.weight.t().to(h.device)
        return h @ table + self.bias

    def drift(self):
        return (self.weight - self.start).norm()


torch.manual_seed(0)
model = Tied()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
tokens, following = torch.randint(0, 20, (40, 5)), torch.randint(0, 20, (40,))
for step in range(10):
    loss = nn.functional.cross_entropy(model(tokens), following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), model.drift().item())
