import torch
from torch import nn

torch.manual_seed(0)
decoder = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4))
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
of_decoder = torch.optim.Adam(decoder.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)


def judge(true, made):
    of_critic.zero_grad()
    loss = nn.functional.softplus(-critic(true)).mean()
    loss = loss + nn.functional.softplus(critic(made.detach())).mean()
    loss.backward()
    of_critic.step()


def improve(made):
    of_decoder.zero_grad()
    loss = nn.functional.softplus(-critic(made.data)).mean()
    loss.backward()
    of_decoder.step()  # <- TL108


for update in range(12):
    true = torch.randn(16, 4).cumsum(1)
    made = decoder(torch.randn(16, 3))
    judge(true, made)
    improve(made)
