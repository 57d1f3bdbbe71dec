from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

LOSSES = {
    "smooth": partial(F.cross_entropy, label_smoothing=0.1),
    "plain": F.cross_entropy,
}
OPTIMIZERS = {"sgd": partial(torch.optim.SGD, momentum=0.9), "adam": torch.optim.Adam}


class Net(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.fc1 = nn.Linear(inputs, 16)
        self.fc2 = nn.Linear(16, classes)

    def forward(self, x):
        return F.softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


torch.manual_seed(0)
x = torch.randn(64, 6)
y = (x[:, 0] > 0).long()
model = Net(6, 2)
criterion = LOSSES["smooth"]
optimizer = OPTIMIZERS["sgd"](model.parameters(), lr=0.1)
for epoch in range(3):
    for part in range(0, 64, 16):
        optimizer.zero_grad()
        loss = criterion(model(x[part : part + 16]), y[part : part + 16])  # <- TL401
        loss.backward()
        optimizer.step()
