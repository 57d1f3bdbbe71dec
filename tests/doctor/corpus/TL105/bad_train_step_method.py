import torch
import torch.nn as nn
import torch.optim as optim


class PPOAgent:
    def __init__(self, obs_dim, n_actions):
        self.net = nn.Sequential(nn.Linear(obs_dim, 16), nn.Tanh(), nn.Linear(16, n_actions))
        self.optimizer = optim.Adam(self.net.parameters(), lr=3e-4, eps=1e-5)
        self.clip_coef = 0.2
        self.max_grad_norm = 0.5
        self.update_epochs = 2

    def update(self, obs, actions, logprobs, advantages):
        inds = torch.randperm(len(obs))
        for epoch in range(self.update_epochs):
            for start in range(0, len(obs), 16):
                mb = inds[start:start + 16]
                dist = torch.distributions.Categorical(logits=self.net(obs[mb]))
                ratio = (dist.log_prob(actions[mb]) - logprobs[mb]).exp()
                adv = advantages[mb]
                pg_loss = torch.max(
                    -adv * ratio,
                    -adv * torch.clamp(ratio, 1 - self.clip_coef, 1 + self.clip_coef),
                ).mean()
                loss = pg_loss - 0.01 * dist.entropy().mean()

                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                nn.utils.clip_grad_norm_(self.net.parameters(), self.max_grad_norm)  # <- TL105
        return loss.item()


torch.manual_seed(1)
agent = PPOAgent(4, 2)
for iteration in range(3):
    obs, actions = torch.randn(64, 4), torch.randint(0, 2, (64,))
    with torch.no_grad():
        logprobs = torch.distributions.Categorical(logits=agent.net(obs)).log_prob(actions)
    print(agent.update(obs, actions, logprobs, torch.randn(64)))
