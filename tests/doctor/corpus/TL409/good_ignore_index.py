"""Three ways to keep the filling out of a cross-entropy: `ignore_index`, -100, a weight of 0."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(0)
SIZE = 20
sentences = [torch.randint(1, SIZE, (int(n),)) for n in torch.randint(4, 12, (32,))]
batches = [
    pad_sequence(sentences[start : start + 8], batch_first=True) for start in range(0, 32, 8)
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SIZE, 8, padding_idx=0)
        self.gru = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, SIZE)

    def forward(self, x):
        return self.out(self.gru(self.embed(x))[0])


def by_index(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0)


def by_default(logits, targets):
    return F.cross_entropy(logits.transpose(1, 2), targets.masked_fill(targets == 0, -100))


def by_weight(logits, targets):
    weight = torch.ones(SIZE)
    weight[0] = 0
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), weight=weight)


for loss_of in (by_index, by_default, by_weight):
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for batch in batches * 2:
        optimizer.zero_grad()
        loss = loss_of(model(batch[:, :-1]), batch[:, 1:])
        loss.backward()
        optimizer.step()
    print(loss.item())
