"""A language model over sentences of many lengths: the padding is predicted like any other word."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

PAD, WORDS = 0, 30
torch.manual_seed(0)
sentences = [torch.randint(1, WORDS, (int(n),)) for n in torch.randint(4, 15, (96,))]


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 12, padding_idx=PAD)
        self.rnn = nn.GRU(12, 16, batch_first=True)
        self.words = nn.Linear(16, WORDS)

    def forward(self, x):
        return self.words(self.rnn(self.embed(x))[0])


model = LanguageModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for start in range(0, len(sentences), 16):
        batch = pad_sequence(sentences[start : start + 16], batch_first=True, padding_value=PAD)
        logits = model(batch[:, :-1])
        loss = criterion(logits.reshape(-1, WORDS), batch[:, 1:].reshape(-1))  # <- TL409
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
