"""The next batch is drawn at the end of each micro-step, as language models do."""
import torch
from torch import nn

torch.manual_seed(0)
text = torch.randint(13, (400,))
micro_steps = 3


def get_batch(split):
    part = text[:300] if split == "train" else text[300:]
    at = torch.randint(len(part) - 9, (4,))
    x = torch.stack([part[i : i + 8] for i in at])
    y = torch.stack([part[i + 1 : i + 9] for i in at])
    return x, y


class Bigram(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size, size)

    def forward(self, tokens, targets=None):
        logits = self.table(tokens)
        if targets is None:
            return logits, None
        return logits, nn.functional.cross_entropy(logits.view(-1, 13), targets.view(-1))


model = Bigram(13)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
X, Y = get_batch("train")
iter_num = 0
while True:
    for micro_step in range(micro_steps):
        logits, loss = model(X, Y)
        X, Y = get_batch("train")
        loss.backward()  # <- TL505
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    iter_num += 1
    if iter_num > 7:
        break
print(loss.item())
