"""Each gate has a layer of its own, and a gate is a plain object."""

import torch
import torch.nn as nn


class Gate:
    def __init__(self, size):
        self.score = nn.Linear(size, size)

    def __call__(self, value, by):
        return value * torch.sigmoid(self.score(by))


class Fusion(nn.Module):
    def __init__(self, size, classes):
        super().__init__()
        self.gate = Gate(size)  # <- TL303
        self.out = nn.Linear(size, classes)

    def forward(self, sound, picture):
        return self.out(self.gate(sound, picture))


class Samples(torch.utils.data.Dataset):
    def __init__(self, count):
        self.sound, self.picture = torch.randn(count, 10), torch.randn(count, 10)
        self.label = (self.sound[:, 0] * self.picture[:, 0] > 0).long()

    def __len__(self):
        return len(self.label)

    def __getitem__(self, index):
        return self.sound[index], self.picture[index], self.label[index]


torch.manual_seed(4)
net = Fusion(10, 2)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for sound, picture, label in torch.utils.data.DataLoader(Samples(160), 16, shuffle=True):
        loss = criterion(net(sound, picture), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
