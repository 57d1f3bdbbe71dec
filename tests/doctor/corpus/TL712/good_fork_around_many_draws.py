"""Samples are written from one seed inside of `fork_rng`, in a loop of many short passes."""
import torch
from torch import nn


class Walk(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(8, 12)
        self.next = nn.Linear(12, 8)

    def forward(self, letters):
        return self.next(torch.tanh(self.letters(letters)))


def write(model, length=24):
    written = [0]
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        for _ in range(length):
            chances = model(torch.tensor(written[-1:]))[0].softmax(0)
            written.append(int(torch.multinomial(chances, 1)))
    return written


torch.manual_seed(0)
model = Walk()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(120):
    letters = torch.randint(8, (32,))
    loss = nn.functional.cross_entropy(model(letters), (letters + 1) % 8)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        print(step, loss.item(), write(model))
