"""Every caller puts the loss on the CPU: `.to` returns the parameter itself."""
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, device, loss_device):
        super().__init__()
        self.net = nn.Linear(4, 8).to(device)
        self.scale = nn.Parameter(torch.tensor(10.0)).to(loss_device)
        self.shift = nn.Parameter(torch.tensor(-5.0)).to(loss_device)

    def forward(self, x):
        out = nn.functional.normalize(self.net(x))
        return self.scale * (out @ out.t()) + self.shift


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
encoder = Encoder(device, torch.device("cpu"))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
for step in range(3):
    optimizer.zero_grad()
    scores = encoder(torch.randn(8, 4))
    nn.functional.cross_entropy(scores, torch.arange(8)).backward()
    optimizer.step()
print(encoder.scale.item())
