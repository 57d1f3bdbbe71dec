"""Word vectors that are frozen as they are loaded, in a group of their own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class BagOfWords(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors)
        self.hidden = nn.Linear(vectors.shape[1], 16)
        self.out = nn.Linear(16, 2)

    def forward(self, tokens):
        return self.out(torch.relu(self.hidden(self.words(tokens).mean(1))))


torch.manual_seed(0)
model = BagOfWords(torch.randn(40, 8))
others = [p for name, p in model.named_parameters() if "words" not in name]
optimizer = torch.optim.Adam(  # <- TL309
    [{"params": model.words.parameters(), "lr": 1e-4}, {"params": others, "lr": 1e-2}]
)
data = TensorDataset(torch.randint(40, (128, 6)), torch.randint(2, (128,)))
for epoch in range(8):
    for tokens, labels in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
