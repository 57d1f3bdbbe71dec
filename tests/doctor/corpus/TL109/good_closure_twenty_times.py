import torch
from torch import nn

torch.manual_seed(0)
X, y = torch.randn(50, 3), torch.randn(50, 1)
model = nn.Linear(3, 1)
lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
adam = torch.optim.Adam(model.parameters(), lr=0.01)


def closure():
    lbfgs.zero_grad()
    loss = nn.functional.mse_loss(model(X), y)
    loss.backward()
    return loss


for _ in range(3):
    adam.zero_grad()
    nn.functional.mse_loss(model(X), y).backward()
    adam.step()
for _ in range(3):
    lbfgs.step(closure)
    print(closure().item())
