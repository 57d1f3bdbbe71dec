import torch
from torch import nn


class Mlp(nn.Sequential):
    def __init__(self, sizes):
        layers = []
        for inner, outer in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [nn.Linear(inner, outer), nn.ReLU()]
        super().__init__(*layers[:-1])


torch.manual_seed(0)
policy, value = Mlp([4, 16, 2]), Mlp([4, 16, 1])
policy_optimizer = torch.optim.Adam(policy.parameters())
value_optimizer = torch.optim.Adam(value.parameters())
for _ in range(10):
    state, reward = torch.randn(32, 4), torch.randn(32, 1)
    value_optimizer.zero_grad()
    (value(state) - reward).pow(2).mean().backward()
    value_optimizer.step()
    loss = -(policy(state).log_softmax(1)[:, :1] * reward).mean()
    loss.backward()
    policy_optimizer.zero_grad()  # <- TL101
    policy_optimizer.step()
