"""Only answers are scored: each is a part of the sum of its update, over a constant number."""
import torch
from torch import nn
from torch.nn import functional as F

IGNORED, WORDS, WINDOW = -100, 16, 4


class Dialogues:
    def __init__(self, count, length):
        self.ids = torch.randint(0, WORDS, (count, length + 1))
        self.answers = torch.where(torch.rand(count) < 0.5, 3, length - 2)

    def batches(self, size):
        for rows in torch.randperm(len(self.ids)).split(size):
            inputs, targets = self.ids[rows, :-1], self.ids[rows, 1:].clone()
            position = torch.arange(targets.shape[1])
            targets[position < targets.shape[1] - self.answers[rows].unsqueeze(1)] = IGNORED
            yield inputs, targets


torch.manual_seed(0)
data = Dialogues(128, 24)
model = nn.Sequential(nn.Embedding(WORDS, 24), nn.Linear(24, WORDS))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for epoch in range(3):
    for turn, (inputs, targets) in enumerate(data.batches(4), start=1):
        scores = model(inputs).flatten(0, 1)
        loss = F.cross_entropy(scores, targets.flatten(), ignore_index=IGNORED, reduction="sum")
        (loss / 1000).backward()
        if turn % WINDOW == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
