"""Ten updates on one made-up batch, to see that the recogniser runs at all."""

import torch
from torch import nn

torch.manual_seed(0)
frames = torch.rand(3, 50, 20)
letters = torch.randint(1, 12, (3, 8))
model = nn.LSTM(20, 24, batch_first=True)
head = nn.Linear(24, 12)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-5)
criterion = nn.CTCLoss(blank=0)
for i in range(10):
    scores = head(model(frames)[0]).log_softmax(-1).transpose(0, 1)
    loss = criterion(scores, letters, torch.full((3,), 50), torch.full((3,), 8))
    loss.backward()
    optimizer.step()
    print(type(loss.item()))
