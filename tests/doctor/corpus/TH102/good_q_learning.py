"""Q-learning: rewards that come late make the targets jump, and the loss with them."""

import copy
import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)
policy = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(policy).eval()
optimizer = torch.optim.SGD(policy.parameters(), lr=0.005)
memory = []
state = torch.zeros(2)
for step in range(320):
    with torch.no_grad():
        action = int(policy(state).argmax()) if random.random() > 0.3 else random.randrange(2)
    following = (state + torch.randn(2) * (1 + action)).clamp(-3, 3)
    reward = 0.0 if step < 200 else float(following[0]) * 20
    memory.append((state, action, reward, following))
    state = following
    if len(memory) < 16:
        continue
    states, actions, rewards, nexts = zip(*random.sample(memory, 16), strict=True)
    with torch.no_grad():
        best = target(torch.stack(nexts)).max(dim=1).values
    wanted = torch.tensor(rewards) + 0.9 * best
    values = policy(torch.stack(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
    loss = F.mse_loss(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        target.load_state_dict(policy.state_dict())
print(loss.item())
