"""Softmaxes over dimension 0 that are meant: weights of the samples of a bag, slots that compete
for inputs, a distribution over time, and prototypes; and classes in dimension 1."""

import torch
from torch import nn

torch.manual_seed(0)
embed, attend, classify = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 3)
parameters = [*embed.parameters(), *attend.parameters(), *classify.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)


def step(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(6):
    # A bag: two sets of weights over its 12 members, one label for the bag.
    hidden = embed(torch.randn(12, 5)).tanh()
    weights = torch.softmax(attend(hidden), 0)
    pooled = (weights.unsqueeze(2) * hidden.unsqueeze(1)).sum(0)
    step(nn.functional.cross_entropy(classify(pooled.mean(0)), torch.tensor(1)))
    # Where in a series of 12 steps does each of 2 events happen?
    log_time = torch.log_softmax(attend(embed(torch.randn(12, 5))), 0)
    step(-log_time.gather(0, torch.randint(0, 12, (1, 2))).mean())
    # Classes, by hand.
    labels = torch.randint(0, 3, (12,))
    log_p = torch.log_softmax(classify(embed(torch.randn(12, 5))), 1)
    step(-log_p[torch.arange(12), labels].mean())
    # An entropy over samples and over classes keeps all classes in use.
    logits = classify(embed(torch.randn(12, 5)))
    p = logits.softmax(0)
    step((p * p.log()).sum(0).mean() + nn.functional.cross_entropy(logits, labels))
