"""Teacher forcing, one word at a time: the decoder is scored on the filling too."""

import torch
from torch import nn

PAD, BOS, EOS, SIZE = 0, 1, 2, 20


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(SIZE, 8, padding_idx=PAD)
        self.gru = nn.GRU(8, 12, batch_first=True)

    def forward(self, x):
        return self.gru(self.embedding(x))[1]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(SIZE, 8, padding_idx=PAD)
        self.gru = nn.GRU(8, 12, batch_first=True)
        self.out = nn.Linear(12, SIZE)

    def forward(self, word, state):
        step, state = self.gru(self.embedding(word), state)
        return self.out(step[:, 0]), state


def pairs(count, batch, length=8):
    for _ in range(count):
        source = torch.randint(3, SIZE, (batch, length))
        target = torch.full((batch, length + 2), PAD)
        for row, n in enumerate(torch.randint(2, length + 1, (batch,)).tolist()):
            target[row, 0] = BOS
            target[row, 1 : n + 1] = source[row, :n].flip(0)
            target[row, n + 1] = EOS
        yield source, target


torch.manual_seed(0)
encoder, decoder = Encoder(), Decoder()
parameters = [*encoder.parameters(), *decoder.parameters()]
optimizer = torch.optim.Adam(parameters, lr=5e-3)
criterion = nn.CrossEntropyLoss()
for number, (source, target) in enumerate(pairs(8, 12)):
    state = encoder(source)
    loss = 0
    for t in range(target.shape[1] - 1):
        scores, state = decoder(target[:, t : t + 1], state)
        loss = loss + criterion(scores, target[:, t + 1])  # <- TL409
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(number, loss.item() / (target.shape[1] - 1))
