"""A small GPT, the same for both loops."""

import torch
from data import CONTEXT, LETTERS
from torch import Tensor, nn

WIDTH = 32


class GPT(nn.Module):
    """Logits (batch, length, letters) of the token after each of `tokens` (batch, length)."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(len(LETTERS), WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        block = nn.TransformerEncoderLayer(
            WIDTH, nhead=4, dim_feedforward=2 * WIDTH, dropout=0.0, batch_first=True,
            norm_first=True, bias=False,
        )  # fmt: skip
        self.blocks = nn.TransformerEncoder(block, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(LETTERS), bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.token(tokens) + self.place(torch.arange(length))
        return self.head(self.norm(self.blocks(x, mask=mask, is_causal=True)))
