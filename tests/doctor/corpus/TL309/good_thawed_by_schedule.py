"""Two groups begin frozen, and a table says in which epoch each is thawed."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.body = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, ids):
        return self.head(torch.tanh(self.body(self.words(ids))))


def learn(part, flag):
    for p in part.parameters():
        p.requires_grad = flag


tagger = Tagger()
learn(tagger.words, False)
learn(tagger.body, False)
optimizer = torch.optim.Adam(
    [
        {"params": tagger.words.parameters(), "lr": 1e-3},
        {"params": tagger.body.parameters(), "lr": 3e-3},
        {"params": tagger.head.parameters(), "lr": 1e-2},
    ]
)
thaw = {2: tagger.body, 4: tagger.words}
ids, tags = torch.randint(0, 20, (64,)), torch.randint(0, 3, (64,))
for epoch in range(7):
    if epoch in thaw:
        learn(thaw[epoch], True)
    for start in range(0, 64, 16):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(
            tagger(ids[start : start + 16]), tags[start : start + 16]
        )
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
