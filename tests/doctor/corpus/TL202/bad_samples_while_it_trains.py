"""Text is written after each epoch, with the dropout of the training."""

import torch
from torch import nn
from torch.nn import functional as F


class Decoder(nn.Module):
    def __init__(self, words=9, width=8):
        super().__init__()
        self.embed, self.drop = nn.Embedding(words, width), nn.Dropout(0.2)
        self.mix, self.head = nn.GRU(width, width, batch_first=True), nn.Linear(width, words)

    def forward(self, tokens, targets=None):
        logits = self.head(self.drop(self.mix(self.embed(tokens))[0]))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(self, tokens, count):
        for _ in range(count):
            logits, _ = self(tokens[:, -8:])
            shares = F.softmax(logits[:, -1] / 0.8, dim=-1)
            tokens = torch.cat((tokens, torch.multinomial(shares, 1)), dim=1)
        return tokens


torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(3):
    for _ in range(5):
        tokens = torch.randint(9, (4, 9))
        _, loss = model(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    start = torch.zeros(1, 1, dtype=torch.long)
    print(model.generate(start, 6).tolist())  # <- TL202
