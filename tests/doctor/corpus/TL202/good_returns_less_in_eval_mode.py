"""In train mode it returns its masks as well; there is nothing else that the mode changes."""
import torch
from torch import nn


def block(inside, outside):
    return nn.Sequential(nn.Linear(inside, outside), nn.ReLU(inplace=True))


class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = block(6, 16), block(16, 16)
        self.pose, self.mask = nn.Linear(16, 3), nn.Linear(16, 4)

    def forward(self, x):
        hidden = self.second(self.first(x))
        pose = self.pose(hidden)
        mask = torch.sigmoid(self.mask(hidden))
        if self.training:
            return mask, pose
        else:
            return None, pose


@torch.no_grad()
def main():
    torch.save({"state_dict": Pose().state_dict()}, "pose.pt")
    weights = torch.load("pose.pt", weights_only=True)
    net = Pose()
    net.load_state_dict(weights["state_dict"])
    total = 0.0
    for x, y in zip(torch.randn(20, 8, 6), torch.randn(20, 8, 3)):
        _, pose = net(x)
        total += (pose - y).abs().mean().item()
    print(total / 20)


torch.manual_seed(0)
main()
