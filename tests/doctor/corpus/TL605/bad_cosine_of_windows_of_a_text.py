"""Own batches of a text, 24 in an epoch: the cosine is made for these, and each fourth one steps."""

import torch
from torch import nn

EPOCHS, ROWS, WINDOW = 5, 16, 4


def excerpts(text, length=12):
    starts = torch.randint(0, len(text) - length - 1, (24 * ROWS,))
    for rows in starts.split(ROWS):
        picked = rows[:, None] + torch.arange(length)
        yield text[picked], text[picked + 1]


class Guess(nn.Module):
    def __init__(self, letters=12, width=24):
        super().__init__()
        self.table = nn.Embedding(letters, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, letters)

    def forward(self, tokens):
        return self.head(self.gru(self.table(tokens))[0])


torch.manual_seed(7)
text = (torch.arange(2000) * 5 + torch.randint(0, 2, (2000,))) % 12
model = Guess()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * 24)  # <- TL605
for epoch in range(EPOCHS):
    for number, (tokens, following) in enumerate(excerpts(text)):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), following)
        (loss / WINDOW).backward()
        if number % WINDOW == WINDOW - 1:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    print(epoch, round(loss.item(), 4), schedule.get_last_lr()[0])
