import itertools

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 2)
weights = list(itertools.chain(encoder.parameters(), head.parameters()))
optimizer = torch.optim.AdamW(weights, lr=1e-3)
inputs, labels = torch.randn(40, 4), torch.randint(0, 2, (40,))

i = 0
while i < 6:
    rows = torch.randperm(40)[:10]
    loss = F.cross_entropy(head(torch.tanh(encoder(inputs[rows]))), labels[rows])
    grads = torch.autograd.grad(loss, weights, retain_graph=True)  # <- TL410
    flatness = torch.cat([g.reshape(-1) for g in grads]).norm()
    objective = sum([loss, 0.05 * flatness])
    optimizer.zero_grad()
    objective.backward()
    optimizer.step()
    i += 1
