import random

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset


class Spectra(Dataset):
    """Spectra, shifted by a few channels at random."""

    def __init__(self, count, augment=True):
        self.spectra = np.random.rand(count, 32).astype(np.float32)
        self.values = self.spectra.mean(axis=1)
        self.augment = augment

    def __len__(self):
        return len(self.spectra)

    def __getitem__(self, i):
        spectrum = self.spectra[i]
        if self.augment:
            spectrum = np.roll(spectrum, random.randint(-2, 2))
        return torch.from_numpy(spectrum.copy()), torch.tensor(self.values[i])


data = Spectra(120)
indices = np.random.permutation(len(data)).tolist()
train_data = Subset(data, indices[:90])
val_data = Subset(data, indices[90:])  # <- TL713
loaders = {
    "train": DataLoader(train_data, batch_size=15, shuffle=True),
    "val": DataLoader(val_data, batch_size=15),
}
net = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(2):
    for phase in ["train", "val"]:
        net.train(phase == "train")
        total = 0.0
        for x, y in loaders[phase]:
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = F.mse_loss(net(x).squeeze(1), y)
                if phase == "train":
                    loss.backward()
                    opt.step()
            total += loss.item() * len(x)
        print(epoch, phase, total / len(loaders[phase].dataset))
