"""Contexts of a language model: the tokens of a sample, at any position of any epoch.

Nothing is precomputed or stored: a sample is its position in the token file, a function of its
index and the epoch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from trueloop.errors import DataError
from trueloop.feed import BatchDataset
from trueloop.seed import mix
from trueloop.tasks.text.token_file import Tokens

Ids = npt.NDArray[np.int64]
Batch = tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]

IGNORE = -100
"""The target where nothing is to be predicted: `ignore_index` of torch's cross-entropy."""
# Sets the offsets apart from other numbers that are drawn from (seed, epoch).
_OFFSET = 0x6F6666736574


class Contexts(BatchDataset):
    """Training contexts: each epoch cuts the tokens into contexts that do not overlap.

    Of N tokens and contexts of T there are max((N - T) // T, 1), and the first begins at an offset
    that is drawn from (seed, epoch): a token has a different position in its context in each epoch.
    The tokens before the first and after the last, fewer than 2 T, are not part of that epoch.

    A batch is (tokens, targets), int64 tensors of shape (B, T): the target is the next token. With
    `end_of_text`, the id that ends a document, it is (tokens, targets, documents): the number of
    each position's document within its row, from 0, where the target of a document's last position
    is -100.

    Raises `DataError` for fewer than T + 1 tokens.
    """

    def __init__(
        self,
        tokens: Tokens | npt.NDArray[np.integer],
        context: int,
        *,
        seed: int = 0,
        end_of_text: int | None = None,
    ) -> None:
        self.tokens = tokens if isinstance(tokens, Tokens) else Tokens(tokens)
        self.context = context
        self.end_of_text = end_of_text
        self._seed = seed
        count = len(self.tokens)
        if count <= context:
            most = count - 1
            remedy = f"write --context {most} or less" if most > 0 else "give more text"
            raise DataError(
                f"the training text has {count:,} {'token' if count == 1 else 'tokens'}, and a "
                f"context of {context:,} needs {context + 1:,}: {remedy}"
            )
        self._contexts = max((count - context) // context, 1)

    def __len__(self) -> int:
        return self._contexts

    def offset(self, epoch: int) -> int:
        """Where the first context of an epoch begins."""
        room = len(self.tokens) - self._contexts * self.context
        return mix(self._seed, epoch, _OFFSET) % room

    def get_batch(self, indices: Ids, epoch: int) -> Batch:
        starts = self.offset(epoch) + indices * self.context
        return _batch(self.tokens.gather(starts, self.context + 1), self.end_of_text)


class WindowDataset(BatchDataset):
    """All tokens in consecutive windows of T, for evaluation: each but the first is predicted once.

    The last window is filled up with the token 0, whose targets are -100. Batches are those of
    `Contexts`. Raises `DataError` for fewer than 2 tokens of the text called `name`.
    """

    def __init__(
        self,
        tokens: Tokens | npt.NDArray[np.integer],
        context: int,
        *,
        end_of_text: int | None = None,
        name: str = "validation",
    ) -> None:
        self.tokens = tokens if isinstance(tokens, Tokens) else Tokens(tokens)
        self.context = context
        self.end_of_text = end_of_text
        count = len(self.tokens)
        if count < 2:
            raise DataError(
                f"the {name} text has {count} {'token' if count == 1 else 'tokens'}, and a score "
                "needs 2: give more text, or a larger --val-fraction"
            )

    def __len__(self) -> int:
        return -(-(len(self.tokens) - 1) // self.context)

    def get_batch(self, indices: Ids, epoch: int) -> Batch:
        width, count = self.context + 1, len(self.tokens)
        starts = indices * self.context
        if count >= width:
            # The last window begins early enough to end with the tokens, and is then moved left.
            rows = self.tokens.gather(np.minimum(starts, count - width), width)
        else:
            rows = np.zeros((len(indices), width), dtype=np.int64)
            rows[:, :count] = self.tokens.read(0, count)
        short = np.flatnonzero(starts > count - width)
        filled = np.ones_like(rows, dtype=bool)
        for row in short:
            there = count - int(starts[row])
            if count >= width:
                rows[row, :there] = rows[row, width - there :].copy()
            rows[row, there:] = 0
            filled[row, there:] = False
        batch = _batch(rows, self.end_of_text)
        if len(short):
            batch[1][torch.from_numpy(~filled[:, 1:])] = IGNORE
        return batch


def _batch(rows: Ids, end_of_text: int | None) -> Batch:
    """Rows of T + 1 ids, int64 (B, T + 1), as (tokens, targets) or (tokens, targets, documents)."""
    tokens = torch.from_numpy(rows[:, :-1].copy())
    targets = torch.from_numpy(rows[:, 1:].copy())
    if end_of_text is None:
        return tokens, targets
    ends = tokens == end_of_text
    targets[ends] = IGNORE
    documents = torch.zeros_like(tokens)
    documents[:, 1:] = ends[:, :-1].cumsum(dim=1)
    return tokens, targets, documents
