"""A Muon with an AdamW inside, as other packages have it: its groups say which is which."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Bigram(nn.Module):
    def __init__(self, vocab=32, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


class MuonWithAuxAdam(torch.optim.Optimizer):
    def __init__(self, groups):
        super().__init__(groups, {"lr": 1e-3})
        self.adam = torch.optim.AdamW(
            [p for group in self.param_groups if not group["use_muon"] for p in group["params"]]
        )

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"] if group["use_muon"] else []:
                u, _, v = torch.linalg.svd(p.grad, full_matrices=False)
                p.sub_(group["lr"] * u @ v)
        self.adam.step()


torch.manual_seed(0)
text = torch.randint(32, (40, 16, 9))
model = Bigram()
matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
others = [p for p in model.parameters() if all(p is not q for q in matrices)]
muon = MuonWithAuxAdam(
    [
        {"params": matrices, "use_muon": True, "lr": 0.02},
        {"params": others, "use_muon": False},
    ]
)

for step, batch in enumerate(text):
    tokens, targets = batch[:, :-1], batch[:, 1:]
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    muon.zero_grad()
    loss.backward()
    muon.step()
    if step % 10 == 0:
        print(f"{step}: {loss.item():.3f}")
