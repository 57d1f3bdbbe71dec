import torch
from torch import nn

torch.manual_seed(2)
tuned = nn.Embedding.from_pretrained(torch.randn(30, 4), freeze=False)
thawed = nn.Embedding.from_pretrained(torch.randn(30, 4))
thawed.weight.requires_grad = True
fixed = nn.Embedding.from_pretrained(torch.randn(30, 4))
head = nn.Linear(12, 2)
first = torch.optim.SGD(tuned.parameters(), lr=0.1)
second = torch.optim.SGD(thawed.parameters(), lr=0.1)
third = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(8):
    word = torch.randint(0, 30, (12,))
    for each in (first, second, third):
        each.zero_grad()
    scores = head(torch.cat([tuned(word), thawed(word), fixed(word)], dim=1))
    nn.functional.cross_entropy(scores, word % 2).backward()
    for each in (first, second, third):
        each.step()
