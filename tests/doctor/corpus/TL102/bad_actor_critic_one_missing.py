import torch
import torch.nn as nn
import torch.nn.functional as F


class Agent:
    def __init__(self, obs_dim=3, act_dim=1, gamma=0.99):
        self.actor = nn.Sequential(nn.Linear(obs_dim, 16), nn.ReLU(), nn.Linear(16, act_dim), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(obs_dim + act_dim, 16), nn.ReLU(), nn.Linear(16, 1))
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.gamma = gamma

    def learn(self, obs, act, rew, next_obs):
        with torch.no_grad():
            next_q = self.critic(torch.cat([next_obs, self.actor(next_obs)], dim=-1))
            target = rew + self.gamma * next_q
        q = self.critic(torch.cat([obs, act], dim=-1))
        critic_loss = F.mse_loss(q, target)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        actor_loss = -self.critic(torch.cat([obs, self.actor(obs)], dim=-1)).mean()
        actor_loss.backward()
        self.actor_optimizer.step()  # <- TL102
        return critic_loss.item(), actor_loss.item()


def main():
    torch.manual_seed(0)
    agent = Agent()
    for step in range(20):
        obs, act = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
        rew, next_obs = torch.randn(32, 1), torch.randn(32, 3)
        losses = agent.learn(obs, act, rew, next_obs)
    print(losses)


if __name__ == "__main__":
    main()
