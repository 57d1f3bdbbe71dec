"""A function lets the given parts learn and freezes all others; later it is given one more."""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(20, 8)
        self.cells = nn.GRU(8, 12, batch_first=True)
        self.verdict = nn.Linear(12, 2)

    def forward(self, texts):
        return self.verdict(self.cells(self.letters(texts))[0][:, -1])


def let_learn(model, *parts):
    chosen = {id(each) for part in parts for each in part.parameters()}
    for each in model.parameters():
        each.requires_grad_(id(each) in chosen)


torch.manual_seed(10)
reader = Reader()
let_learn(reader, reader.verdict)
optimizer = torch.optim.Adam(
    [{"params": reader.verdict.parameters()}, {"params": reader.cells.parameters(), "lr": 1e-3}],
    lr=1e-2,
)
texts = torch.randint(0, 20, (96, 7))
answers = (texts[:, -1] > 9).long()
for epoch in range(4):
    if epoch == 2:
        let_learn(reader, reader.verdict, reader.cells)
    for rows in torch.randperm(96).split(16):
        optimizer.zero_grad()
        nn.functional.cross_entropy(reader(texts[rows]), answers[rows]).backward()
        optimizer.step()
    print(epoch)
