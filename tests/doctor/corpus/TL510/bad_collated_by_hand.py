"""A collate function writes out the padding of its lists; four batches make an update."""

import torch
from torch import nn
from torch.utils.data import DataLoader

NOTHING, KINDS = 0, 9
torch.manual_seed(0)
phrases = [torch.randint(1, KINDS, (int(n),)).tolist() for n in torch.randint(3, 30, (96,))]


def together(rows):
    longest = max(len(row) for row in rows)
    full = [row + [NOTHING] * (longest - len(row)) for row in rows]
    return torch.LongTensor(full)


class Next(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(KINDS, 12)
        self.memory = nn.GRU(12, 24, batch_first=True)
        self.out = nn.Linear(24, KINDS)

    def forward(self, rows):
        return self.out(self.memory(self.table(rows))[0])


feed = DataLoader(phrases, batch_size=6, shuffle=True, collate_fn=together)
model = Next()
criterion = nn.CrossEntropyLoss(ignore_index=NOTHING)
optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9)
for epoch in range(3):
    for number, rows in enumerate(feed, start=1):
        guess = model(rows[:, :-1])
        loss = criterion(guess.flatten(0, 1), rows[:, 1:].flatten())  # <- TL510
        (loss / 4).backward()
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
