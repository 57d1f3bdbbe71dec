"""One sequence to a micro-batch: each sequence counts the same, whatever its length. And a step of
this package, which weighs ragged batches by itself."""

import torch
from torch import nn

import trueloop

torch.manual_seed(0)
texts = [torch.randint(0, 20, (1, int(n))) for n in torch.randint(4, 30, (24,))]
model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for number, text in enumerate(texts, 1):
    logits = model(text[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    (loss / 4).backward()
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()

net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
step = trueloop.Step(
    net,
    torch.optim.SGD(net.parameters(), lr=0.1),
    trueloop.supervised(nn.CrossEntropyLoss()),
    accumulate=2,
)
sizes = [4, 8, 6, 3, 8, 2, 5, 8]
for size in sizes:
    step((torch.randn(size, 3), torch.randint(0, 2, (size,))))
