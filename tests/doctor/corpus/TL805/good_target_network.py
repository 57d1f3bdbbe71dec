"""The state dict of the moment goes into another network at once, as in deep Q-learning."""
import torch
from torch import nn


def make():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))


policy, target = make(), make()
target.load_state_dict(policy.state_dict())
target.eval()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for step in range(20):
    state, reward = torch.randn(8, 4), torch.randn(8)
    with torch.no_grad():
        wanted = reward + 0.9 * target(torch.randn(8, 4)).amax(dim=1)
    q = policy(state)[torch.arange(8), torch.randint(0, 2, (8,))]
    loss = nn.functional.smooth_l1_loss(q, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        weights = policy.state_dict()
        target.load_state_dict(weights)
