"""Which columns of a table of inputs determine the target, each by itself."""

from __future__ import annotations

from collections import Counter

import torch

_ROWS = 20_000
"""Rows after which a table is settled."""
_FEW = 20
"""Values of a target that counts as classes."""
_LEAST = 100
"""Rows that a finding needs."""
_PER_CLASS = 5
_MARKED_LEAST = 200
_MARKED_PER_CLASS = 20
_MARKED_VALUES = 10
"""Different values that the other class has in a column that marks one class."""


class TargetTable:
    """Of each column: is it the target, by equality, by renaming, or by a value that all samples of
    one class have and none of the other?

    `distinct`: only different rows count, where the same few may come again and again.
    """

    def __init__(self, *, distinct: bool = False) -> None:
        self.rows = 0
        self.closed = False
        self._different: set[tuple[float, ...]] | None = set() if distinct else None
        self._equal: torch.Tensor | None = None
        self._pairs: dict[int, dict[float, float]] | None = None
        self._counts: Counter[float] = Counter()
        self._marks: dict[float, _Mark] = {}

    def see(self, inputs: torch.Tensor, target: torch.Tensor) -> None:
        """Rows of inputs, `(N, C)`, and their targets, `(N,)`."""
        if self.closed:
            return
        x, y = inputs.detach().cpu(), target.detach().cpu()
        self.rows += len(x)
        if self._different is not None and len(self._different) < _MARKED_LEAST:
            self._different.update(map(tuple, x.tolist()))
        same = (x == y.to(x.dtype)[:, None]).all(0)
        self._equal = same if self._equal is None else self._equal & same
        self._counts.update(y.tolist())
        whole = len(self._counts) <= _FEW and all(float(each).is_integer() for each in self._counts)
        self._see_renamed(x, y, whole)
        self._see_marked(x, y, whole)
        open_still = self._pairs or bool(self._equal.any())
        open_still = open_still or any(bool(each.alive.any()) for each in self._marks.values())
        self.closed = self.rows > _ROWS or not open_still

    def _see_renamed(self, x: torch.Tensor, y: torch.Tensor, whole: bool) -> None:
        if self._pairs is None:
            self._pairs = {column: {} for column in range(x.shape[1])}
        if not whole:
            self._pairs = {}
        for column in list(self._pairs):
            known = self._pairs[column]
            for value, label in set(zip(x[:, column].tolist(), y.tolist(), strict=True)):
                if known.setdefault(value, label) != label:
                    del self._pairs[column]
                    break
            else:
                if len(known) > _FEW or len(set(known.values())) < len(known):
                    del self._pairs[column]

    def _see_marked(self, x: torch.Tensor, y: torch.Tensor, whole: bool) -> None:
        if not whole or len(self._counts) > 2:  # nor will they be two classes later
            self._marks.clear()
            return
        for label in set(y.tolist()):
            if label not in self._marks:
                self._marks[label] = _Mark(x[y == label][0])
        for label, mark in self._marks.items():
            mark.see(x[y == label], x[y != label])

    def columns(self) -> list[int]:
        """Those that determine the target, if it is not constant and rare in none of its values."""
        seen = self.rows if self._different is None else len(self._different)
        if seen < _LEAST or len(self._counts) < 2:
            return []
        rarest = min(self._counts.values())
        if len(self._counts) <= _FEW and rarest < _PER_CLASS:
            return []
        equal = [] if self._equal is None else self._equal.nonzero().reshape(-1).tolist()
        found = {*equal, *(self._pairs or {})}
        if seen >= _MARKED_LEAST and rarest >= _MARKED_PER_CLASS:
            found.update(column for each in self._marks.values() for column in each.columns())
        return sorted(found)


class _Mark:
    """The columns in which all samples of a class have one value, and none of the others has it."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value.clone()
        self.alive = torch.ones(len(value), dtype=torch.bool)
        self.others: dict[int, set[float]] = {}

    def see(self, own: torch.Tensor, others: torch.Tensor) -> None:
        self.alive &= (own == self.value).all(0) & (others != self.value).all(0)
        for column in self.alive.nonzero().reshape(-1).tolist():
            values = self.others.setdefault(column, set())
            if len(values) < _MARKED_VALUES:
                values.update(others[:, column].tolist())

    def columns(self) -> list[int]:
        alive = self.alive.nonzero().reshape(-1).tolist()
        return [each for each in alive if len(self.others.get(each, ())) >= _MARKED_VALUES]
