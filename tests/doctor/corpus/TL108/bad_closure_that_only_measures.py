import torch
from torch import nn

torch.manual_seed(0)
t = torch.linspace(0, 3, 40).unsqueeze(1)
y = torch.sin(t)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=3)


def closure():
    optimizer.zero_grad()
    return nn.functional.mse_loss(net(t), y)


for iteration in range(4):
    loss = optimizer.step(closure)  # <- TL108
    print(iteration, float(loss))
