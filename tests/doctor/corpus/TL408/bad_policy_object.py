import torch
from torch import nn


class Policy:
    def __init__(self, net, rate):
        self.net, self.optimizer = net, torch.optim.Adam(net.parameters(), lr=rate)

    def probabilities(self, x):
        return torch.softmax(self.net(x), dim=0)  # <- TL408

    def update(self, x, y):
        chosen = self.probabilities(x).gather(1, y[:, None]).squeeze(1)
        loss = -(chosen + 1e-8).log().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(29)
planes = torch.randn(6, 3)
policy = Policy(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), 4e-3)
for step in range(12):
    x = torch.randn(40, 6)
    print(policy.update(x, (x @ planes).argmax(1)))
