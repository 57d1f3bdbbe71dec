"""A translator without padding in its loss: sums of words, and a running mean of plain numbers."""

import torch
from torch import nn


class RunningMean:
    def __init__(self, share=0.9):
        self.share = share
        self.value = 0

    def add(self, number):
        self.latest = number
        self.value = self.share * self.value + (1 - self.share) * self.latest


def masked_loss(scores, words, mask):
    count = mask.sum()
    picked = torch.gather(scores, 1, words.view(-1, 1)).view(-1)
    return -picked[mask].mean(), count.item()


def sentences():
    torch.manual_seed(1)
    lengths = torch.randint(2, 5, (40, 16))
    words = torch.randint(0, 6, (40, 4, 16))
    mask = torch.arange(4).view(1, 4, 1) < lengths.unsqueeze(1)
    return [(words[i], mask[i], int(lengths[i].max())) for i in range(40)]


def update(model, optimizer, words, mask, length):
    optimizer.zero_grad()
    loss = 0
    sums, words_seen = [], 0
    scores = model(torch.ones(16, 3)).log_softmax(dim=1)
    for t in range(length):
        part, count = masked_loss(scores, words[t], mask[t])
        loss += part
        sums.append(part.item() * count)
        words_seen += count
    loss.backward()
    optimizer.step()
    return sum(sums) / words_seen


def main():
    torch.manual_seed(0)
    model = nn.Linear(3, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    mean = RunningMean()
    data = sentences()
    for epoch in range(2):
        for i in torch.randperm(len(data)).tolist():
            words, mask, length = data[i]
            mean.add(update(model, optimizer, words, mask, length))
        print(epoch, mean.value)


main()
