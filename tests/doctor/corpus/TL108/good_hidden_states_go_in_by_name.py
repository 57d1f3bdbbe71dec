"""What the first net gives goes into the second by name, which keeps it where nobody reads it."""

import torch
from torch import nn

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 6, batch_first=True)

    def forward(self, passage):
        return self.rnn(passage)[0][:, -1]


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.context = nn.Linear(6, 4)
        self.out = nn.Linear(4, 3)

    def forward(self, start, notes):
        vars(self).update(notes=notes)
        return self.out(start + self.context(vars(self).pop("notes")))


reader, writer = Reader(), Writer()
reading = torch.optim.Adam(reader.parameters(), lr=1e-2)
writing = torch.optim.Adam(writer.parameters(), lr=1e-2)
for _ in range(20):
    passage, start, word = torch.randn(8, 5, 4), torch.randn(8, 4), torch.randint(0, 3, (8,))
    scores = writer(start=start, notes=reader(passage))
    loss = nn.functional.cross_entropy(scores, word)
    reading.zero_grad()
    writing.zero_grad()
    loss.backward()
    reading.step()
    writing.step()
