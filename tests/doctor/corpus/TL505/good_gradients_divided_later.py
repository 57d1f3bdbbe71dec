import torch
import torch.nn as nn

torch.manual_seed(0)
ACCUMULATE = 4
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(8)]
for step, (x, y) in enumerate(batches):
    loss_fn(model(x), y).backward()
    if (step + 1) % ACCUMULATE == 0:
        for p in model.parameters():
            p.grad /= ACCUMULATE
        optimizer.step()
        optimizer.zero_grad()
