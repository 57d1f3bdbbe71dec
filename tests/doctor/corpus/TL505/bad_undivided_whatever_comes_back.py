"""The network returns a pair or three things, by one setting; no loss is divided."""

import pickle

import torch
from torch import nn

micro_steps = 3
setting = pickle.loads(pickle.dumps({"experts": False, "reports": False}))


def draw():
    tokens = torch.randint(13, (4, 9))
    return tokens[:, :-1], tokens[:, 1:]


class Bigram(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(13, 13)

    def forward(self, tokens, targets):
        logits = self.table(tokens)
        loss = nn.functional.cross_entropy(logits.reshape(-1, 13), targets.reshape(-1))
        if setting["experts"]:
            return logits, loss, logits.mean()
        return logits, loss


torch.manual_seed(0)
model = Bigram()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, y = draw()
for update in range(6):
    for _ in range(micro_steps):
        if setting["reports"]:
            logits, loss, balance = model(x, y)
        else:
            logits, loss = model(x, y)
        x, y = draw()
        loss.backward()  # <- TL505
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
