import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout
from torch.utils.data import DataLoader, TensorDataset


class WordDropout(nn.Module):
    """Drops whole words while training."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        mask = dropout(x.new_ones(x.size(0), x.size(1), 1), self.p)
        return x * mask


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.drop = WordDropout(0.2)
        self.out = nn.Linear(8, 3)

    def forward(self, tokens):
        return self.out(self.drop(self.embed(tokens)).mean(1))


torch.manual_seed(0)
tokens, topics = torch.randint(0, 30, (64, 6)), torch.randint(0, 3, (64,))
loader = DataLoader(TensorDataset(tokens, topics), batch_size=16, shuffle=True)
bag = Bag()
optimizer = torch.optim.Adam(bag.parameters(), lr=1e-2)
for epoch in range(2):
    bag.train()
    for batch, topic in loader:
        optimizer.zero_grad()
        loss = cross_entropy(bag(batch), topic)
        loss.backward()
        optimizer.step()
    bag.eval()
    with torch.no_grad():
        print(epoch, (bag(tokens).argmax(1) == topics).float().mean().item())
