"""The texts of a batch as they grow, and the model's logits for what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trueloop.generate.prompts import Model, checked_logits, floats

_WORTH_PREPARING = 8
"""New tokens from which on it pays to let a model arrange its weights for single ones."""


class Decoder:
    """Feeds a model and keeps its cache; `prompt` once, then `put` and `next` for each new token.

    Texts are kept with padding on the left, so that a new token is a column. To the model they go
    with padding on the right, each at its own positions, so that a row is computed as in a batch of
    one.

    When a text would exceed the model's context, the model continues with the text's last `context
    // 2` tokens, at positions from 0 on, until the context is full again: it sees between a half
    and the whole of its context, at the cost of one short pass every `context // 2` tokens.
    """

    def __init__(
        self,
        model: Model,
        *,
        context: int | None,
        cache: bool,
        device: torch.device,
    ) -> None:
        self._model: Any = model
        self._context, self._device = context, device
        self._cached = cache and hasattr(model, "new_cache")
        self._cache: Any = None

    def prompt(self, rows: Sequence[Sequence[int]], new: int) -> Tensor:
        """Logits after each prompt, (prompts, vocabulary); `new` tokens are to follow at most."""
        longest = max(map(len, rows))
        self.length = longest
        """Columns that are filled."""
        self._begins = [longest - len(row) for row in rows]
        self.starts = torch.tensor(self._begins, device=self._device)
        """Where the text of each row begins, int64 (rows,)."""
        self.is_ragged = any(self._begins)
        padded = [[0] * (longest - len(row)) + list(row) for row in rows]
        self.texts = torch.zeros(len(rows), longest + new, dtype=torch.long, device=self._device)
        """Tokens with padding on the left, int64 (rows, longest prompt + new)."""
        self.texts[:, :longest] = torch.tensor(padded, device=self._device)
        if self._cached and new >= _WORTH_PREPARING and hasattr(self._model, "decoding"):
            self._model = self._model.decoding()
        if self._cached:
            room = longest + new if self._context is None else min(longest + new, self._context)
            self._cache = self._model.new_cache(len(rows), room)
        return self._read_windows()

    def put(self, tokens: Tensor) -> None:
        """Add a token to each row, int64 (rows,)."""
        self.texts[:, self.length] = tokens
        self.length += 1

    def next(self) -> Tensor:
        """Logits after the token that was put last, (rows, vocabulary)."""
        if self._context is not None and self.length - min(self._begins) > self._context:
            self._slide()
        if not self._cached:
            return self._read_windows()
        logits = self._read(self.texts[:, self.length - 1 : self.length])
        return floats(checked_logits(logits)[:, -1])

    def reorder(self, rows: Tensor) -> None:
        """Let row k be what `rows[k]` was: a text may be dropped or repeated."""
        self.texts, self.starts = self.texts[rows], self.starts[rows]
        if self.is_ragged:
            self._begins = [self._begins[row] for row in rows.tolist()]
            self.is_ragged = any(self._begins)
        else:
            self._begins = self._begins[:1] * len(rows)
        if self._cached:
            self._cache.reorder(rows)

    @property
    def so_far(self) -> Tensor:
        """The texts as they are now, int64 (rows, columns filled)."""
        return self.texts[:, : self.length]

    def _slide(self) -> None:
        """Let the rows that have outgrown the context begin at a later token."""
        assert self._context is not None
        full = [row for row, at in enumerate(self._begins) if self.length - at > self._context]
        keep = max(1, self._context // 2)
        for row in full:
            self._begins[row] = self.length - keep
        if not self._cached:
            return
        other = self._model.new_cache(len(full), self._context)
        if keep > 1:  # the new token itself is fed to all rows alike
            window = self.texts[full, self.length - keep : self.length - 1]
            self._model(window, cache=other)
        self._cache.replace(full, other)

    def _read_windows(self) -> Tensor:
        """Logits after each row's window, all of which the model reads."""
        lengths = [self.length - at for at in self._begins]
        longest = max(lengths)
        windows = self.texts[:, self.length - longest : self.length]
        if min(lengths) == longest:
            return floats(checked_logits(self._read(windows))[:, -1])
        ends = torch.tensor(lengths, device=self._device)
        # Each row moves to the left end; what comes around from the right is its padding.
        columns = torch.arange(longest, device=self._device) + (longest - ends)[:, None]
        logits = checked_logits(self._read(windows.gather(1, columns % longest)))
        if self._cached:
            self._cache.truncate(lengths)
        return floats(logits[torch.arange(len(lengths), device=self._device), ends - 1])

    def _read(self, tokens: Tensor) -> Any:
        if self._cached:
            return self._model(tokens, cache=self._cache)
        return self._model(tokens)
