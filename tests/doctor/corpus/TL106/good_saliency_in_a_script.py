"""Maps of saliency: a trained network is frozen, and the gradient of each picture is looked at."""
import torch
from torch import nn


def saliency(net, picture):
    picture = picture.clone()
    picture.requires_grad = True
    for parameter in net.parameters():
        parameter.requires_grad = False
    try:
        score = net(picture).sum()
    except RuntimeError:
        net = net.cuda()
        score = net(picture.cuda()).sum()
    score.backward()
    return picture.grad.abs().amax(1)


torch.manual_seed(0)
net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)  # as the loader of checkpoints asks for it
for name in ("first", "second", "third"):
    print(name, saliency(net, torch.rand(1, 4, 4)).max().item())
