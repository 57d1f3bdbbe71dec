"""Cross-validation of a small recurrent network; the training of each fold sets the seed."""

import torch
from torch import nn

FOLDS = 3


class Counter(nn.Module):
    def __init__(self, symbols, width):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, text):
        return self.head(self.cell(self.embed(text))[1][0])


class Fold:
    def __init__(self, net, seed=7):
        self.net, self.seed = net, seed
        self.optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def run(self, text, label, epochs=3):
        torch.manual_seed(self.seed)  # <- TL806
        for _ in range(epochs):
            for rows in torch.randperm(len(text)).split(20):
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(text[rows]), label[rows]).backward()
                self.optimizer.step()

    @torch.no_grad()
    def score(self, text, label):
        return (self.net(text).argmax(1) == label).float().mean().item()


def main():
    text = (torch.arange(1200) * 7 % 11).view(120, 10)
    label = (text.sum(1) % 2).long()
    parts = torch.arange(120) % FOLDS
    for held in range(FOLDS):
        fold = Fold(Counter(11, 12))
        inside, outside = parts != held, parts == held
        fold.run(text[inside], label[inside])
        print(held, fold.score(text[outside], label[outside]))


main()
