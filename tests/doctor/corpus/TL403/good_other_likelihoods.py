import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(0)
torch.set_num_threads(1)


class ActorCritic(nn.Module):
    def __init__(self, observations=4, actions=2):
        super().__init__()
        self.affine = nn.Linear(observations, 16)
        self.action_head = nn.Linear(16, actions)
        self.mean_head = nn.Linear(16, 1)
        self.log_var_head = nn.Linear(16, 1)

    def forward(self, x):
        hidden = F.relu(self.affine(x))
        return self.action_head(hidden), self.mean_head(hidden), self.log_var_head(hidden)


policy = ActorCritic()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
gaussian_nll = nn.GaussianNLLLoss()
poisson_nll = nn.PoissonNLLLoss()

for episode in range(20):
    states = torch.randn(24, 4)
    scores, mean, log_var = policy(states)
    distribution = Categorical(logits=scores)
    actions = distribution.sample()
    rewards = states[:, 0] * (actions * 2 - 1)
    advantage = rewards - rewards.mean()

    policy_loss = -(distribution.log_prob(actions) * advantage).mean()
    behaviour_loss = F.nll_loss(distribution.logits, actions)
    value_loss = gaussian_nll(mean.squeeze(1), rewards, log_var.exp().squeeze(1))
    count_loss = poisson_nll(mean.squeeze(1), rewards.abs().round())
    loss = policy_loss + 0.5 * value_loss + 0.01 * count_loss + 0.01 * behaviour_loss

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 5 == 0:
        print(episode, rewards.mean().item(), loss.item())
