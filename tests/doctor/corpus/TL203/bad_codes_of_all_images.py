"""The codes of all images are written down: a method of the model calls its parts, with graphs."""

import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(12, 8), nn.Dropout(0.1))
        self.top = nn.Linear(8, 4)

    def forward(self, x):
        return self.encode(x)[0]

    def encode(self, x):
        bottom = torch.relu(self.bottom(x))
        return self.top(bottom), bottom


def extract(coder, loader):
    found = []
    for (images,) in loader:
        top, bottom = coder.encode(images)  # <- TL203
        found.append((top.detach().argmax(1), bottom.detach().argmax(1)))
    return found


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "coder.pt")
    torch.save(Coder().state_dict(), path)
    model = Coder()
    model.load_state_dict(torch.load(path))
model.eval()
print(len(extract(model, DataLoader(TensorDataset(torch.randn(96, 12)), batch_size=16))))
