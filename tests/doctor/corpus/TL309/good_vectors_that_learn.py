"""Given word vectors, which go on learning at a rate of their own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class BagOfWords(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False)
        self.out = nn.Linear(vectors.shape[1], 2)

    def forward(self, tokens):
        return self.out(self.words(tokens).mean(1))


torch.manual_seed(0)
model = BagOfWords(torch.randn(40, 8))
others = [p for name, p in model.named_parameters() if "words" not in name]
groups = [{"params": model.words.parameters(), "lr": 1e-4}, {"params": others, "lr": 1e-2}]
optimizer = torch.optim.Adam(groups)
data = TensorDataset(torch.randint(40, (128, 6)), torch.randint(2, (128,)))
for epoch in range(4):
    for tokens, labels in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
