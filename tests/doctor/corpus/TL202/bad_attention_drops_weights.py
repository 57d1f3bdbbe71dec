"""Attention drops weights as long as nobody calls `eval()`: each run writes other words."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Shape:
    width: int = 8
    words: int = 11
    rate: float = 0.2


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.mix = nn.Linear(shape.width, 3 * shape.width)
        self.rate = shape.rate

    def forward(self, x):
        q, k, v = self.mix(x).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.rate if self.training else 0, is_causal=True
        )


class Writer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embed = nn.Embedding(shape.words, shape.width)
        self.attend = Attention(shape)
        self.head = nn.Linear(shape.width, shape.words)

    def forward(self, words):
        return self.head(self.attend(self.embed(words)))


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "writer.pt"
    torch.save(Writer(Shape()).state_dict(), file)
    writer = Writer(Shape(width=8))
    writer.load_state_dict(torch.load(file))
    words = [1]
    for _ in range(12):
        with torch.inference_mode():
            scores = writer(torch.tensor([words]))[0, -1]  # <- TL202
            words.append(int(scores.argmax()))
    print(words)
