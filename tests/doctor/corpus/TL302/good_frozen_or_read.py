"""Fine-tuning a head on a body whose weights were read from a file; and one that is frozen."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.body(x))


def fit(model, parameters, loader):
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(0)
x, y = torch.randn(96, 6), torch.randint(0, 3, (96,))
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

pretrained = Net(classes=10)
print("all:", fit(pretrained, pretrained.parameters(), loader))

# The body is only used: its gradients are computed for nothing, and its weights are right.
tuned = Net(classes=3)
tuned.body.load_state_dict(pretrained.body.state_dict())
print("head alone:", fit(tuned, tuned.head.parameters(), loader))

# The same model once more, its head alone: what it has learnt is kept.
print("head again:", fit(pretrained, pretrained.head.parameters(), loader))

copied = copy.deepcopy(pretrained)
copied.head = nn.Linear(24, 3)
print("head of a copy:", fit(copied, copied.head.parameters(), loader))

frozen = Net(classes=3)
frozen.body.requires_grad_(False)
print("frozen:", fit(frozen, [p for p in frozen.parameters() if p.requires_grad], loader))
