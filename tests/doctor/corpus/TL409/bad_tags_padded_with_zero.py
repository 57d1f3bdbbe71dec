"""Tags of words: 0 is the tag of most words, and the filling of the short sentences too."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Tagged(Dataset):
    def __init__(self, count, longest=9):
        self.words, self.tags = [], []
        for _ in range(count):
            length = int(torch.randint(3, longest + 1, ()))
            self.words.append(torch.randint(2, 40, (length,)))
            self.tags.append((self.words[-1] % 4).clamp(max=3))

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return self.words[i], self.tags[i]


def collate(samples):
    longest = max(len(words) for words, _ in samples)
    words = torch.zeros(len(samples), longest, dtype=torch.long)
    tags = torch.zeros_like(words)
    for row, (w, t) in enumerate(samples):
        words[row, : len(w)] = w
        tags[row, : len(t)] = t
    return words, tags


class Tagger(nn.Module):
    def __init__(self, vocabulary=40, tags=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(16, tags)

    def forward(self, words):
        hidden, _ = self.lstm(self.embedding(words))
        return self.scores(hidden)


def train_epoch(model, loader, optimizer):
    total = 0.0
    for words, tags in loader:
        optimizer.zero_grad()
        scores = model(words)
        loss = F.cross_entropy(scores.transpose(1, 2), tags)  # <- TL409
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(words)
    return total / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Tagged(80), batch_size=10, shuffle=True, collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        print(train_epoch(model, loader, optimizer))
