"""The encoder's wish to fool the critic stays in the critic's gradients."""

import torch
import torch.nn.functional as F
from torch import nn


class Model:
    def __init__(self):
        self.encoder, self.decoder = nn.Linear(10, 2), nn.Linear(2, 10)
        self.critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        self.opt_auto = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()])
        self.opt_critic = torch.optim.Adam(self.critic.parameters())

    def fool(self, x):
        self.opt_auto.zero_grad()
        z = self.encoder(x)
        fooled = F.binary_cross_entropy_with_logits(self.critic(z), torch.ones(len(x), 1))
        (F.mse_loss(self.decoder(z), x) + 0.1 * fooled).backward()
        self.opt_auto.step()

    def judge(self, x):
        with torch.no_grad():
            z = self.encoder(x)
        scores = self.critic(torch.cat([torch.randn(len(x), 2), z]))
        wanted = torch.cat([torch.ones(len(x), 1), torch.zeros(len(x), 1)])
        loss = F.binary_cross_entropy_with_logits(scores, wanted)
        loss.backward()  # <- TL110
        self.opt_critic.step()
        self.opt_critic.zero_grad()
        return loss.item()


torch.manual_seed(0)
model = Model()
for _ in range(12):
    x = torch.randn(16, 10)
    model.fool(x)
    print(model.judge(x))
