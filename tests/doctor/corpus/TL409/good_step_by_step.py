"""A decoder that goes word by word, with a loss that ignores the filling; and a sequence model of
which only the last words are scored."""

import torch
from torch import nn

PAD, SIZE = 0, 16


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(SIZE, 8, padding_idx=PAD)
        self.cell = nn.GRUCell(8, 12)
        self.out = nn.Linear(12, SIZE)

    def forward(self, word, state):
        state = self.cell(self.embedding(word), state)
        return self.out(state), state


def targets(size=10, longest=8):
    lengths = torch.randint(3, longest + 1, (size,))
    words = torch.randint(1, SIZE, (size, longest))
    return words * (torch.arange(longest) < lengths[:, None]), lengths


class Trainer:
    def __init__(self):
        self.decoder = Decoder()
        self.optimizer = torch.optim.Adam(self.decoder.parameters(), lr=1e-2)
        self.criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    def step(self, words):
        state, losses = torch.zeros(len(words), 12), []
        for t in range(words.shape[1] - 1):
            scores, state = self.decoder(words[:, t], state)
            if (words[:, t + 1] != PAD).any():
                losses.append(self.criterion(scores, words[:, t + 1]))
        return self.update(torch.stack(losses).mean())

    def last(self, words, lengths):
        state, kept = torch.zeros(len(words), 12), []
        for t in range(words.shape[1]):
            scores, state = self.decoder(words[:, t].roll(1), state)
            kept.append(scores)
        rows = torch.arange(len(words))
        final = torch.stack(kept, 1)[rows, lengths - 1]
        return self.update(nn.functional.cross_entropy(final, words[rows, lengths - 1]))

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
trainer = Trainer()
for _ in range(6):
    words, lengths = targets()
    print(trainer.step(words), trainer.last(words, lengths))
