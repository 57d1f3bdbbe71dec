import torch
import torch.nn as nn


def conv(n_in, n_out, norm=nn.BatchNorm3d):
    return nn.Sequential(nn.Conv3d(n_in, n_out, 3), norm(n_out, 0.9), nn.ELU())  # <- TL310


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv(1, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, clip):
        return self.head(self.stem(clip).mean((2, 3, 4)))


print(Video()(torch.randn(2, 1, 5, 5, 5)).shape)
