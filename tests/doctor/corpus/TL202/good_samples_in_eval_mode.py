"""The mode is set for the samples, and given back."""

import torch
from torch import nn
from torch.nn import functional as F


class Decoder(nn.Module):
    def __init__(self, words=9, width=8):
        super().__init__()
        self.embed, self.drop = nn.Embedding(words, width), nn.Dropout(0.2)
        self.mix, self.head = nn.GRU(width, width, batch_first=True), nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.drop(self.mix(self.embed(tokens))[0]))

    @torch.no_grad()
    def generate(self, tokens, count):
        before = self.training
        self.eval()
        for _ in range(count):
            best = self(tokens)[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat((tokens, best), dim=1)
        self.train(before)
        return tokens


torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(3):
    for _ in range(5):
        tokens = torch.randint(9, (4, 9))
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(model.generate(torch.zeros(1, 1, dtype=torch.long), 6).tolist())
