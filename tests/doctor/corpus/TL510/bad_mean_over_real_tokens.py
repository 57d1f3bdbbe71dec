"""Sentences of many lengths, four batches to an update, each divided by four."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD, WORDS, EVERY = 0, 40, 4


def collate(sentences):
    padded = pad_sequence(sentences, batch_first=True, padding_value=PAD)
    return padded[:, :-1], padded[:, 1:]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 12, padding_idx=PAD)
        self.gru = nn.GRU(12, 16, batch_first=True)
        self.out = nn.Linear(16, WORDS)

    def forward(self, x):
        return self.out(self.gru(self.embed(x))[0])


torch.manual_seed(0)
sentences = [torch.randint(1, WORDS, (int(n),)) for n in torch.randint(3, 30, (128,))]
loader = DataLoader(sentences, batch_size=4, shuffle=True, collate_fn=collate)
model = Model()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        logits = model(x)
        loss = criterion(logits.flatten(0, 1), y.flatten())  # <- TL510
        (loss / EVERY).backward()
        if (i + 1) % EVERY == 0:
            optimizer.step()
            optimizer.zero_grad()
