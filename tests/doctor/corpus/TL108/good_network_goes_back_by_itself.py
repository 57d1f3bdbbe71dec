"""A network of segments computes its gradients itself, segment by segment, where it is asked to."""

import torch
from torch import nn

torch.manual_seed(4)


class Segments(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(4, 8), nn.Linear(8, 1)

    def forward(self, x, memory_replay_backprop=False):
        state, total = torch.zeros(len(x), 8), 0.0
        for part in x.unbind(1):
            state = self.cell(part, state.detach())
            loss = (self.out(state) - part[:, :1]).pow(2).mean()
            if memory_replay_backprop:
                globals()["go"](loss)
            total += loss.item()
        return total


go = vars(torch.autograd)["backward"]
net = Segments()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(20):
    total = net(torch.randn(8, 3, 4), memory_replay_backprop=True)
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
print(total)
