import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
gamma = 0.99
for episode in range(4):
    log_probs, rewards = [], []
    for t in range(5):
        choice = Categorical(logits=policy(torch.randn(4)))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        rewards.append(float(action))
    total = 0.0
    for t, reward in enumerate(rewards):
        total = total + gamma**t * reward
    running, discount = 0.0, 1.0
    for reward in rewards:
        running += discount * reward
        discount *= gamma
    loss = -(total + 0.0 * running) * torch.stack(log_probs).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
