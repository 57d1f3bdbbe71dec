import torch
from torch import nn

block = nn.Sequential(nn.Conv1d(2, 8, 3), nn.BatchNorm1d(8, eps=0.8), nn.ReLU())
smooth = nn.BatchNorm1d(8, eps=0.1, momentum=0.2)
print(smooth(block(torch.randn(4, 2, 9))).shape)
