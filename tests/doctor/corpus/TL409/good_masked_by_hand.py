"""A mask picks the real positions, weighs them, or makes the others zero; a packed sequence has
none."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

torch.manual_seed(0)
lengths = torch.randint(4, 12, (40,))
samples = [torch.randint(1, 15, (int(n),)) for n in lengths]
embed, lstm, head = nn.Embedding(15, 8, padding_idx=0), nn.LSTM(8, 8, batch_first=True), None
head = nn.Linear(8, 15)
net = nn.ModuleList([embed, lstm, head])
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def step(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for start in range(0, 40, 8):
    words = pad_sequence(samples[start : start + 8], batch_first=True)
    x, y = words[:, :-1], words[:, 1:]
    mask = y != 0

    logits = head(lstm(embed(x))[0])
    each = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
    step((each * mask.flatten()).sum() / mask.sum())

    logits = head(lstm(embed(x))[0])
    step(nn.functional.cross_entropy(logits[mask], y[mask]))

    packed = pack_padded_sequence(
        embed(x), mask.sum(1).clamp(min=1), batch_first=True, enforce_sorted=False
    )
    hidden = lstm(packed)[0]
    targets = pack_padded_sequence(
        y, mask.sum(1).clamp(min=1), batch_first=True, enforce_sorted=False
    ).data
    step(nn.functional.cross_entropy(head(hidden.data), targets))

# Numbers: predictions and targets are both 0 where nothing is.
series = [torch.randn(int(n), 2) for n in lengths]
rnn, out = nn.GRU(2, 8, batch_first=True), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
for start in range(0, 40, 8):
    x = pad_sequence(series[start : start + 8], batch_first=True)
    target = x.sum(-1)
    real = (target != 0).float()
    prediction = out(rnn(x)[0]).squeeze(-1) * real
    step(nn.functional.mse_loss(prediction, target, reduction="sum") / real.sum())
