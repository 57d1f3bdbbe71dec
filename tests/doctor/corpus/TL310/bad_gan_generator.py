import torch
import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, latent_dim=8):
        super().__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))  # <- TL310
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(latent_dim, 16, normalize=False), *block(16, 32), nn.Linear(32, 2), nn.Tanh()
        )

    def forward(self, z):
        return self.model(z)


torch.manual_seed(0)
print(Generator()(torch.randn(4, 8)).shape)
