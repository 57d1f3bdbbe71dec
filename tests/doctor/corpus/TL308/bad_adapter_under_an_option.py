import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, adapt=False):
        super().__init__()
        self.adapt = adapt
        self.embed = nn.Embedding(30, 8)
        self.out = nn.Linear(8, 4)

    def forward(self, words):
        h = self.embed(words)
        if self.adapt:
            adapter = nn.Linear(8, 8).to(h.device)  # <- TL308
            h = h + adapter(h)
        return self.out(h)


def main(adapt):
    model = Tagger(adapt)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(6):
        words, tags = torch.randint(0, 30, (4, 6)), torch.randint(0, 4, (4, 6))
        loss = nn.functional.cross_entropy(model(words).transpose(1, 2), tags)
        opt.zero_grad()
        loss.backward()
        opt.step()


main(adapt=True)
