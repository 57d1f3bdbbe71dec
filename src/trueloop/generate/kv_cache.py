"""The key-value cache: what attention has computed of the tokens so far, so that each new token
costs one position and not all of them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trueloop.errors import ConfigError


class Attend(NamedTuple):
    """The two arguments of `scaled_dot_product_attention` that say who sees whom."""

    mask: Tensor | None
    """`attn_mask`: bool (batch or 1, 1, length, keys), True where a query sees a key."""
    is_causal: bool


class KeyValueCache:
    """Keys and values of every layer, in memory that is reserved once.

    A row of the batch is a text, each with its own length. New keys and values are written after
    its last position, and a query sees its own row up to its own position, and nothing else: the
    logits are those of a forward over the whole text. Rows of one length, which is the common case,
    take a path of slices: no mask, no scatter.

    A forward of `length` new tokens calls `positions(length)` once, `extend(layer, keys, values)`
    in each layer, and `advance(length)` at its end. Prompts of different lengths go through in one
    pass, padded on the right; `truncate(lengths)` then takes the padding off again.

    Args:
        layers: attention layers.
        batch: rows.
        heads: key-value heads of a layer.
        capacity: positions that a row has room for.
        width: entries of a head.
        dtype: of keys and values.
        device: where they are kept.
    """

    def __init__(
        self,
        *,
        layers: int,
        batch: int,
        heads: int,
        capacity: int,
        width: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.layers, self.capacity = layers, capacity
        # Zeros: what a mask hides is multiplied by 0, which would leave a NaN one.
        self._store = torch.zeros(
            2 * layers, batch, heads, capacity, width, dtype=dtype, device=device
        )
        self._whole = self._store.unbind(0)
        self._every = torch.arange(capacity, device=device)
        self._set_lengths([0] * batch)

    @property
    def batch(self) -> int:
        """How many rows there are."""
        return len(self._lengths)

    @property
    def lengths(self) -> list[int]:
        """Positions that each row has."""
        return list(self._lengths)

    def _set_lengths(self, lengths: list[int]) -> None:
        self._lengths = lengths
        self._length = lengths[0] if len(set(lengths)) == 1 else None
        """The one length of all rows; None where they differ."""
        if self._length is None:
            self._ends = torch.tensor(lengths, device=self._every.device)
            self._rows = torch.arange(len(lengths), device=self._every.device)[:, None]
        self._seen = 0
        """How many new tokens `positions` has last prepared for."""

    def positions(self, length: int) -> Tensor:
        """Begin a forward: the positions of each row's next tokens.

        Args:
            length: how many new tokens each row has.

        Returns:
            int64 (batch, length).

        Raises:
            ConfigError: the cache has no room for them.
        """
        longest = max(self._lengths) if self._length is None else self._length
        if longest + length > self.capacity:
            raise ConfigError(
                f"the cache has room for {self.capacity} positions, and {longest + length} are "
                "needed: create it with a larger capacity"
            )
        self._seen = length
        if self._length is None:
            self._positions = self._ends[:, None] + self._every[:length]
            reach = longest + length
            seen = self._every[:reach] <= self._positions[:, :, None]
            self._attend, self._reach = Attend(seen[:, None], False), reach
            return self._positions
        start, stop = self._length, self._length + length
        filled = self._store.narrow(3, 0, stop)
        self._filled = filled.unbind(0)
        self._new = filled.narrow(3, start, length).unbind(0)
        self._attend = self._among_equals(start, stop)
        return self._every[start:stop].expand(self.batch, length)

    def _among_equals(self, start: int, stop: int) -> Attend:
        """Who sees whom where all rows have one length."""
        if start == 0:
            return Attend(None, stop > 1)
        if stop - start == 1:
            return Attend(None, False)
        mask = self._every[:stop] <= self._every[start:stop, None]
        return Attend(mask[None, None], False)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Attend]:
        """Add a layer's new keys and values.

        Args:
            layer: the layer's number, from 0.
            keys: (batch, heads, length, width), rotated already.
            values: (batch, heads, length, width).

        Returns:
            All keys and all values so far, each (batch, heads, positions, width), and the
            `Attend(mask, is_causal)` with which `scaled_dot_product_attention` takes them.
        """
        assert keys.shape[2] == self._seen, "call positions(length) at the start of the forward"
        at = 2 * layer
        if self._length is not None:
            self._new[at].copy_(keys)
            self._new[at + 1].copy_(values)
            return self._filled[at], self._filled[at + 1], self._attend
        for place, new in ((at, keys), (at + 1, values)):
            # Two index tensors with a slice between them: torch wants (batch, length, heads, …).
            self._whole[place][self._rows, :, self._positions] = new.transpose(1, 2)
        all_keys, all_values = (self._whole[k].narrow(2, 0, self._reach) for k in (at, at + 1))
        return all_keys, all_values, self._attend

    def advance(self, length: int) -> None:
        """End a forward: count its tokens.

        Args:
            length: as given to `positions`.
        """
        assert length == self._seen, "advance(length) ends the forward that positions(length) began"
        self._lengths = [each + length for each in self._lengths]
        if self._length is None:
            self._ends += length
        else:
            self._length += length
        self._seen = 0

    def truncate(self, lengths: Sequence[int]) -> None:
        """Keep the first positions of each row.

        Args:
            lengths: how many, for each row; at most those that it has.
        """
        short = zip(lengths, self._lengths, strict=True)
        assert all(0 <= new <= old for new, old in short), "a row has no more than it has"
        self._set_lengths(list(lengths))

    def reorder(self, rows: Tensor | Sequence[int]) -> None:
        """Let row k become what row `rows[k]` was.

        In beam search a beam continues a different beam; one prompt has several samples.

        Args:
            rows: int64 (new batch,); a row may be dropped or repeated.
        """
        index = torch.as_tensor(rows, device=self._every.device)
        reach = max(self._lengths)
        if len(index) == self.batch:
            # Only what is filled; advanced indexing makes a copy before it is written back.
            self._store[:, :, :, :reach] = self._store[:, index, :, :reach]
        else:
            self._store = self._store.index_select(1, index)
            self._whole = self._store.unbind(0)
        if self._length is None:
            self._set_lengths([self._lengths[row] for row in index.tolist()])
        else:
            self._set_lengths([self._length] * len(index))

    def replace(self, rows: Sequence[int], other: KeyValueCache) -> None:
        """Let each of `rows` become the row of `other` at the same place.

        Args:
            rows: rows of this cache, as many as `other` has.
            other: a cache of the same layers, heads, width and dtype.
        """
        reach = max(other.lengths)
        index = torch.tensor(list(rows), device=self._every.device)
        self._store[:, index, :, :reach] = other._store[:, :, :, :reach]
        lengths = self.lengths
        for row, length in zip(rows, other.lengths, strict=True):
            lengths[row] = length
        self._set_lengths(lengths)
