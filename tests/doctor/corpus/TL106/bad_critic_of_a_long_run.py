import torch
from torch import nn

torch.manual_seed(3)
actor = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 4))
critic = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
goal = torch.randn(5, 4)
for episode in range(160):
    seen = torch.randn(24, 5)
    chosen = torch.distributions.Categorical(logits=actor(seen))
    with torch.no_grad():
        action = chosen.sample()
        reward = (seen @ goal).gather(1, action[:, None])[:, 0]
    expected = critic(seen)[:, 0]
    gain = (reward - expected).detach()
    actor_loss = -(chosen.log_prob(action) * gain).mean()
    critic_loss = (expected - reward).pow(2).mean()
    actor_optimizer.zero_grad()
    critic_optimizer.zero_grad()
    actor_loss.backward()
    critic_loss.backward()  # <- TL106
    actor_optimizer.step()
    if episode % 40 == 0:
        print(episode, reward.mean().item())
