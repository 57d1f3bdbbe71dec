import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    # This line silences its own complaint: other tools of ours read it.
    loss = model(torch.randn(8, 4)).square().mean()  # trueloop: ignore[TL203, TL001]
    loss.backward()
    optimizer.step()
