import torch
from torch import nn


class Genre(nn.Module):
    def __init__(self, tones, genres):
        super().__init__()
        self.hear = nn.Sequential(nn.Conv1d(1, 6, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.name = nn.Linear(6 * tones, genres)

    def forward(self, sound):
        return torch.log_softmax(self.name(self.hear(sound.unsqueeze(1))), 0)  # <- TL408


torch.manual_seed(9)
sounds = torch.randn(180, 16)
genres = sounds[:, :7].argmax(1)
model = Genre(16, 7)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.NLLLoss()
for epoch in range(3):
    shuffled = torch.randperm(180)
    for start in range(0, 180, 30):
        chosen = shuffled[start : start + 30]
        optimizer.zero_grad()
        loss = criterion(model(sounds[chosen]), genres[chosen])
        loss.backward()
        optimizer.step()
