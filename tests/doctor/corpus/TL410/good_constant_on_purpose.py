import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(3, 1)
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
policy_optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(6):
    state, reward = torch.randn(12, 3), torch.randn(12, 1)
    action = torch.tanh(policy(state))
    q = critic(torch.cat([state, action], dim=1))
    dqda = torch.autograd.grad(q.sum(), action, retain_graph=True)[0]
    size = dqda.norm()
    policy_loss = 0.5 * nn.functional.mse_loss(action, (action + dqda).detach(), reduction="sum")
    reported = policy_loss + size.detach()
    policy_optimizer.zero_grad()
    policy_loss.backward()
    policy_optimizer.step()
    critic_loss = nn.functional.mse_loss(critic(torch.cat([state, action.detach()], 1)), reward)
    critic_loss = critic_loss + size.detach()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
