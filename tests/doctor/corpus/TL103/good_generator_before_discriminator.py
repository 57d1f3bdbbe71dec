import torch
import torch.nn as nn
import torch.nn.functional as F


class Gen(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2))

    def forward(self, z):
        return self.net(z)


def train_step(G, D, opt_G, opt_D, real):
    """The fakes are made before D's update and used again after it."""
    fake = G(torch.randn(real.size(0), 3))

    opt_D.zero_grad()
    loss_D = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
    loss_D.backward()
    opt_D.step()

    opt_G.zero_grad()
    loss_G = F.softplus(-D(fake)).mean()
    loss_G.backward()
    opt_G.step()
    return loss_D.item(), loss_G.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    G, D = Gen(), nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 1))
    opt_G = torch.optim.Adam(G.parameters(), lr=1e-3)
    opt_D = torch.optim.Adam(D.parameters(), lr=1e-3)
    for step in range(20):
        losses = train_step(G, D, opt_G, opt_D, torch.randn(16, 2))
    print(losses)
