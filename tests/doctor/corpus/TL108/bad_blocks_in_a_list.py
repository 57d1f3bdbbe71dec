"""A language model of blocks; micro-batches in a loop of their own, and no backward."""
import torch
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + Scale.apply(self.mix(x), 0.5)


class LM(nn.Module):
    def __init__(self, vocabulary, width, depth):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, targets=None):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        loss = None
        if targets is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


torch.manual_seed(0)
text = torch.randint(11, (500,))


def get_batch():
    starts = torch.randint(len(text) - 9, (4,))
    x = torch.stack([text[i : i + 8] for i in starts])
    return x, torch.stack([text[i + 1 : i + 9] for i in starts])


model = LM(11, 8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
accumulate = 2
for update in range(4):
    for _ in range(accumulate):
        x, y = get_batch()
        logits, loss = model(x, y)
        loss = loss / accumulate
    optimizer.step()  # <- TL108
    optimizer.zero_grad(set_to_none=True)
    print(loss.item())
