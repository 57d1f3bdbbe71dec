"""A text of made-up sentences, the same for both loops."""

import random

import torch
from torch import Tensor

LETTERS = "abcdefghijklmnopqrstuvwxyz ."
CONTEXT = 32
WORDS = (
    ["the cat", "a dog", "my bird", "one fish"],
    ["sees", "likes", "hears", "wants"],
    ["the sun", "a tree", "my house", "one cloud"],
)


def windows(sentences: int, seed: int) -> Tensor:
    """Windows of a text, (n, CONTEXT + 1) int64: each token and the one after it."""
    draw = random.Random(seed)
    text = ". ".join(" ".join(draw.choice(words) for words in WORDS) for _ in range(sentences))
    tokens = torch.tensor([LETTERS.index(letter) for letter in text])
    return tokens.unfold(0, CONTEXT + 1, CONTEXT).clone()
