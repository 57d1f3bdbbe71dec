import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class WordPairs(Dataset):
    """Draws negatives with a generator of its own; read in the main process alone."""

    def __init__(self, n_words, n_pairs):
        self.pairs = torch.randint(0, n_words, (n_pairs, 2)).tolist()
        self.n_words = n_words
        self.rng = random.Random(17)

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        word, context = self.pairs[index]
        return word, context, self.rng.randrange(self.n_words)


class SkipGram(nn.Module):
    def __init__(self, n_words, dim=8):
        super().__init__()
        self.words = nn.Embedding(n_words, dim)
        self.contexts = nn.Embedding(n_words, dim)

    def forward(self, word, context, negative):
        w = self.words(word)
        positive = (w * self.contexts(context)).sum(-1)
        wrong = (w * self.contexts(negative)).sum(-1)
        return -(nn.functional.logsigmoid(positive) + nn.functional.logsigmoid(-wrong)).mean()


model = SkipGram(30)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(WordPairs(30, 200), batch_size=50, shuffle=True, num_workers=0)
for epoch in range(2):
    for word, context, negative in loader:
        optimizer.zero_grad()
        loss = model(word, context, negative)
        loss.backward()
        optimizer.step()
