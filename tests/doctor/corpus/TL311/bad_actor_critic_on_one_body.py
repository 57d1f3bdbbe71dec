import torch
from torch import nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.policy = nn.Linear(8, 2)
        self.value = nn.Linear(8, 1)

    def forward(self, s):
        h = torch.tanh(self.body(s))
        return Categorical(logits=self.policy(h)), self.value(h)


def main():
    torch.manual_seed(0)
    agent = Agent()
    actor = torch.optim.Adam(agent.parameters(), lr=3e-4)
    critic = torch.optim.Adam(agent.parameters(), lr=1e-3)  # <- TL311
    for episode in range(5):
        states, returns = torch.randn(10, 4), torch.randn(10)
        dist, values = agent(states)
        actions = dist.sample()
        advantage = returns - values.squeeze(-1)
        loss = -(dist.log_prob(actions) * advantage.detach()).mean() + advantage.pow(2).mean()
        actor.zero_grad()
        critic.zero_grad()
        loss.backward()
        actor.step()
        critic.step()


main()
