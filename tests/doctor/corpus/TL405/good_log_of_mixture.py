import torch
import torch.nn as nn
from torch.distributions import Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, dim=10, latent=2, codes=6):
        super().__init__()
        self.encoder = nn.Linear(dim, 2 * latent)
        self.decoder = nn.Linear(latent, dim)
        self.assign = nn.Linear(latent, codes)

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        posterior = Normal(mean, (0.5 * log_var).exp())
        z = posterior.rsample()
        return self.decoder(z), posterior, torch.softmax(self.assign(z), dim=1)


def target_distribution(q):
    weight = q**2 / q.sum(dim=0)
    return (weight.t() / weight.sum(dim=1)).t()


torch.manual_seed(0)
torch.set_num_threads(1)
loader = torch.utils.data.DataLoader(torch.randn(128, 10), batch_size=32, shuffle=True)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
clustering = nn.KLDivLoss(reduction="batchmean")
for epoch in range(3):
    for x in loader:
        reconstruction, posterior, q = model(x)
        p = target_distribution(q).detach()
        prior = Normal(torch.zeros_like(posterior.mean), torch.ones_like(posterior.stddev))
        kl = kl_divergence(posterior, prior).sum(dim=1).mean()
        loss = nn.functional.mse_loss(reconstruction, x) + 0.01 * kl
        loss = loss + 0.1 * clustering(q.log(), p)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
