import torch
from torch import nn

torch.manual_seed(6)


class FullPrecision:
    """Copies of the weights in float32 get the gradients, and the steps."""

    def __init__(self, net, lr):
        self.low = list(net.parameters())
        self.full = [weight.detach().float().clone() for weight in self.low]
        self.adam = torch.optim.Adam(self.full, lr=lr)

    def step(self):
        for copy, weight in zip(self.full, self.low, strict=True):
            copy.grad = weight.grad.float()
        self.adam.step()
        with torch.no_grad():
            for copy, weight in zip(self.full, self.low, strict=True):
                weight.copy_(copy)

    def forget(self):
        for weight in self.low:
            weight.grad = None


net = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 3)).to(torch.bfloat16)
optimizer = FullPrecision(net, lr=3e-3)
x = torch.randn(320, 6, dtype=torch.bfloat16)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for rows in torch.randperm(len(x)).split(40):
        loss = nn.functional.cross_entropy(net(x[rows]).float(), y[rows])
        optimizer.forget()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
