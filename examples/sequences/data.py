"""Sequences of different lengths, the same for both loops."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

LETTERS, IGNORED = 6, -100


def sequences(n: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """`n` pairs of letters (length,) int64 and, for each place, the letter two places before."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 16, (n,), generator=generator).tolist()
    letters = [torch.randint(0, LETTERS, (k,), generator=generator) for k in lengths]
    return [(each, torch.cat([torch.tensor([IGNORED] * 2), each[:-2]])) for each in letters]


def padded(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """A batch: letters and targets (n, longest), padded with 0 and IGNORED, and lengths (n,)."""
    letters, targets = zip(*samples, strict=True)
    return (
        pad_sequence(letters, batch_first=True),
        pad_sequence(targets, batch_first=True, padding_value=IGNORED),
        torch.tensor([len(each) for each in letters]),
    )


class Tagger(nn.Module):
    """Logits (n, longest, letters) for each place of padded sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, 16)
        self.gru = nn.GRU(16, 48, batch_first=True)
        self.head = nn.Linear(48, LETTERS)

    def forward(self, letters: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            self.embedding(letters), lengths, batch_first=True, enforce_sorted=False
        )
        hidden, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.head(hidden)
