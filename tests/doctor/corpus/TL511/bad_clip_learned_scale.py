import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Linear(12, 6)
        self.text = nn.Linear(9, 6)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        a = F.normalize(self.image(image), dim=-1)
        b = F.normalize(self.text(text), dim=-1)
        return self.scale.exp() * a @ b.t()


torch.manual_seed(0)
images, texts = torch.randn(192, 12), torch.randn(192, 9)
model = TwoTowers()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
window, size = 3, 16
for epoch in range(4):
    for i, start in enumerate(range(0, 192, size)):
        rows = slice(start, start + size)
        logits = model(images[rows], texts[rows])
        own = torch.arange(size)
        loss = (F.cross_entropy(logits, own) + F.cross_entropy(logits.t(), own)) / 2
        (loss / window).backward()  # <- TL511
        if (i + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
