import torch
from torch import nn


class Genre(nn.Module):
    """Of a single sound: its scores have one dimension."""

    def __init__(self, tones, genres):
        super().__init__()
        self.name = nn.Sequential(nn.Linear(tones, 24), nn.ReLU(), nn.Linear(24, genres))

    def forward(self, sound):
        return self.name(sound).log_softmax(0)


torch.manual_seed(9)
sounds = torch.randn(60, 16)
genres = sounds[:, :7].argmax(1)
model = Genre(16, 7)
optimizer = torch.optim.SGD(model.parameters(), lr=2e-3)
criterion = nn.NLLLoss()
for epoch in range(2):
    for chosen in torch.randperm(60):
        optimizer.zero_grad()
        loss = criterion(model(sounds[chosen]), genres[chosen])
        loss.backward()
        optimizer.step()
