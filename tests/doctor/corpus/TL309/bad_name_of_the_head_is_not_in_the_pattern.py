"""A loop freezes by name all that is not low-rank; the head, which has a group, is frozen too."""
import torch
from torch import nn

LEARNS = ("lora_", ".scale")


class LowRank(nn.Module):
    def __init__(self, inputs, outputs, rank):
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.lora_down = nn.Linear(inputs, rank, bias=False)
        self.lora_up = nn.Linear(rank, outputs, bias=False)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.base(x) + self.scale * self.lora_up(self.lora_down(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([LowRank(6, 16, 2), LowRank(16, 16, 2)])
        self.norm = nn.LayerNorm(16)
        self.classifier = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.classifier(self.norm(x))


torch.manual_seed(0)
net = Net()
for name, p in net.named_parameters():
    if any(part in name for part in LEARNS):
        p.requires_grad = True
    else:
        p.requires_grad = False
low_rank = [p for p in net.layers.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(  # <- TL309
    [{"params": low_rank, "lr": 1e-2}, {"params": net.classifier.parameters(), "lr": 1e-3}]
)
for x in torch.randn(10, 12, 6):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    optimizer.step()
