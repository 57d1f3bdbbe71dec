"""Micro-batches in a loop of their own, scaled losses, tags for some of the words."""

import torch
from torch import nn

steps, micro_steps = 8, 4
torch.manual_seed(0)


def endless():
    while True:
        words = torch.randint(0, 50, (6, 12))
        tags = words % 5
        known = torch.rand(6, 12) < torch.rand(()) * 0.8 + 0.1
        yield words, tags.where(known, -1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.tag = nn.Linear(8, 5)

    def forward(self, words, tags):
        scores = self.tag(self.lstm(self.embedding(words))[0])
        return nn.functional.nll_loss(  # <- TL510
            scores.log_softmax(-1).transpose(1, 2), tags, ignore_index=-1
        )


tagger = Tagger()
optimizer = torch.optim.AdamW(tagger.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
data = endless()
for step in range(steps):
    optimizer.zero_grad(set_to_none=True)
    for _ in range(micro_steps):
        words, tags = next(data)
        loss = tagger(words, tags) / micro_steps
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item() * micro_steps)
