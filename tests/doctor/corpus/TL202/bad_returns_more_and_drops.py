"""The program that only predicts never calls `eval()`: a layer drops a tenth of what it passes."""
import torch
from torch import nn


class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop = nn.Linear(6, 16), nn.Dropout(0.1)
        self.pose, self.mask = nn.Linear(16, 3), nn.Linear(16, 4)

    def forward(self, x):
        hidden = self.drop(torch.relu(self.first(x)))
        pose = self.pose(hidden)
        mask = torch.sigmoid(self.mask(hidden))
        if self.training:
            return mask, pose
        return None, pose


@torch.no_grad()
def main():
    torch.save({"state_dict": Pose().state_dict()}, "pose.pt")
    weights = torch.load("pose.pt", weights_only=True)
    net = Pose()
    net.load_state_dict(weights["state_dict"])
    total = 0.0
    for x, y in zip(torch.randn(20, 8, 6), torch.randn(20, 8, 3)):
        _, pose = net(x)  # <- TL202
        total += (pose - y).abs().mean().item()
    print(total / 20)


torch.manual_seed(0)
main()
