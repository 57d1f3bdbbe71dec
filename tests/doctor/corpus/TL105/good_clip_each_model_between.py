import torch
import torch.nn as nn


class ActorCritic:
    def __init__(self):
        self.actor = nn.Linear(3, 2)
        self.critic = nn.Linear(3, 1)
        self.pi_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.vf_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def update(self, obs, act, ret):
        dist = torch.distributions.Categorical(logits=self.actor(obs))
        value = self.critic(obs).squeeze(-1)
        adv = (ret - value).detach()
        loss = -(dist.log_prob(act) * adv).mean() + 0.5 * (ret - value).pow(2).mean()
        self.pi_opt.zero_grad()
        self.vf_opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.actor.parameters(), 0.5)
        self.pi_opt.step()
        nn.utils.clip_grad_norm_(self.critic.parameters(), 0.5)
        self.vf_opt.step()
        return loss.item()


def main(updates=10):
    torch.manual_seed(0)
    ac = ActorCritic()
    for _ in range(updates):
        loss = ac.update(torch.randn(32, 3), torch.randint(0, 2, (32,)), torch.randn(32))
    print(loss)


if __name__ == "__main__":
    main()
