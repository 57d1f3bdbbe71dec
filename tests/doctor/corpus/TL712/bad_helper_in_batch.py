import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Denoiser:
    def __init__(self, dim, seed=0):
        self.seed = seed
        self.model = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def training_step(self, clean):
        set_seed(self.seed)  # <- TL712
        noise = torch.randn_like(clean)
        loss = nn.functional.mse_loss(self.model(clean + noise), noise)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader, epochs):
        self.model.train()
        for epoch in range(epochs):
            for (clean,) in loader:
                loss = self.training_step(clean)
            print(epoch, loss)


if __name__ == "__main__":
    data = DataLoader(TensorDataset(torch.randn(48, 4)), batch_size=12, shuffle=True)
    Denoiser(4).fit(data, epochs=2)
