import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class TD3:
    def __init__(self, state_dim=3, action_dim=1, policy_freq=2):
        self.actor = nn.Sequential(nn.Linear(state_dim, 16), nn.ReLU(), nn.Linear(16, action_dim))
        self.actor_target = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.critic = nn.Sequential(nn.Linear(state_dim + action_dim, 16), nn.ReLU(), nn.Linear(16, 1))
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-4)
        self.policy_freq = policy_freq
        self.total_it = 0

    def train(self, state, action, next_state, reward):
        self.total_it += 1
        with torch.no_grad():
            next_q = self.critic_target(torch.cat([next_state, self.actor_target(next_state)], 1))
            target_q = reward + 0.99 * next_q
        critic_loss = F.mse_loss(self.critic(torch.cat([state, action], 1)), target_q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        # Delayed policy updates
        if self.total_it % self.policy_freq == 0:
            actor_loss = -self.critic(torch.cat([state, self.actor(state)], 1)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            for param, target in zip(self.critic.parameters(), self.critic_target.parameters()):
                target.data.copy_(0.005 * param.data + 0.995 * target.data)


torch.manual_seed(0)
agent = TD3()
for t in range(10):
    agent.train(torch.randn(8, 3), torch.randn(8, 1), torch.randn(8, 3), torch.randn(8, 1))
