"""Saliency maps of samples that are sorted by class, one by one."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

labels = torch.arange(3).repeat_interleave(12)
loader = DataLoader(TensorDataset(torch.rand(36, 1, 4, 4), labels), batch_size=1)
net = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
net.eval()
maps = []
for image, label in loader:
    image.requires_grad_()
    score = net(image)[0, label]
    score.backward()
    maps.append(image.grad.abs().amax(1))
print(torch.cat(maps).mean())
