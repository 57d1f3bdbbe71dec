"""Updates of three padded batches each, which are taken from the loader beforehand."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def pad(rows):
    words = [row[:-1] for row in rows]
    following = [row[1:] for row in rows]
    return (
        pad_sequence(words, batch_first=True),
        pad_sequence(following, batch_first=True, padding_value=-1),
    )


class Next(nn.Module):
    def __init__(self, words=30, size=16):
        super().__init__()
        self.look_up = nn.Embedding(words, size)
        self.read = nn.LSTM(size, size, batch_first=True)
        self.guess = nn.Linear(size, words)

    def forward(self, words):
        return self.guess(self.read(self.look_up(words))[0])


torch.manual_seed(1)
texts = [torch.randint(1, 30, (int(torch.randint(4, 40, ())),)) for _ in range(96)]
loader = DataLoader(texts, batch_size=4, shuffle=True, collate_fn=pad)
net = Next()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(ignore_index=-1)
for epoch in range(3):
    waiting = []
    for batch in loader:
        waiting.append(batch)
        if len(waiting) < 3:
            continue
        optimizer.zero_grad()
        for words, following in waiting:
            loss = criterion(net(words).transpose(1, 2), following)  # <- TL510
            (loss / len(waiting)).backward()
        optimizer.step()
        waiting = []
