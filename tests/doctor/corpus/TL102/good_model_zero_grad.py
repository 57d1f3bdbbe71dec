import time

import torch
from torch import nn

torch.manual_seed(1)
bptt, ntokens = 7, 20
corpus = torch.randint(0, ntokens, (4, 71))


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(ntokens, 12)
        self.rnn = nn.LSTM(12, 12, batch_first=True)
        self.decoder = nn.Linear(12, ntokens)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out).view(-1, ntokens), hidden

    def init_hidden(self, bsz):
        return torch.zeros(1, bsz, 12), torch.zeros(1, bsz, 12)


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    return tuple(v.detach() for v in h)


model = RNNModel()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)


def train():
    model.train()
    total_loss = 0.0
    start_time = time.time()
    hidden = model.init_hidden(4)
    for i in range(0, corpus.size(1) - 1, bptt):
        data = corpus[:, i:i + bptt]
        targets = corpus[:, i + 1:i + 1 + bptt].reshape(-1)
        # Starting each batch, we detach the hidden state from how it was previously produced.
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total_loss += loss.item()
    print(f"{time.time() - start_time:.2f}s loss {total_loss / 10:.3f}")


for epoch in range(2):
    train()
