"""One large batch, cut into parts that fit into memory: the longest sentences come first."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

torch.manual_seed(0)
VOCABULARY = 20


class Predict(nn.Module):
    def __init__(self):
        super().__init__()
        self.lookup = nn.Embedding(VOCABULARY, 8)
        self.recurrent = nn.GRU(8, 12, batch_first=True)
        self.project = nn.Linear(12, VOCABULARY)

    def forward(self, packed):
        inner = packed._replace(data=self.lookup(packed.data))
        return self.project(self.recurrent(inner)[0].data)


def large_batch(size=16):
    sentences = [torch.randint(0, VOCABULARY, (int(n),)) for n in torch.randint(3, 24, (size,))]
    return sorted(sentences, key=len, reverse=True)


def pack(sentences, shift):
    cut = [each[:-1] if shift == 0 else each[1:] for each in sentences]
    lengths = [len(each) for each in cut]
    return pack_padded_sequence(pad_sequence(cut, batch_first=True), lengths, batch_first=True)


model = Predict()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
parts = 4
for update in range(6):
    sentences = large_batch()
    optimizer.zero_grad()
    for number in range(parts):
        some = sentences[number * 4 : (number + 1) * 4]
        loss = nn.functional.cross_entropy(model(pack(some, 0)), pack(some, 1).data)  # <- TL510
        loss.mul(1 / parts).backward()
    optimizer.step()
