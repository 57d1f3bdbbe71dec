import torch
from torch import nn


class Tones:
    """Recordings of one instrument after those of another."""

    def __init__(self, instruments, each, points=16):
        sounds, names = [], []
        for number in range(instruments):
            sounds.append(torch.randn(each, points) + number)
            names.append(torch.full((each,), number))
        self.sounds, self.names = torch.cat(sounds), torch.cat(names)

    def parts(self, size):
        for first in range(0, len(self.names), size):
            yield self.sounds[first : first + size], self.names[first : first + size]


torch.manual_seed(7)
tones = Tones(instruments=5, each=40)
net = nn.Linear(16, 5)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    total = 0.0
    for sounds, names in tones.parts(10):
        optimizer.zero_grad()
        loss = criterion(net(sounds), names)  # <- TL703
        loss.backward()
        optimizer.step()
        total += loss.item() * len(names)
    print(epoch, total / len(tones.names))
