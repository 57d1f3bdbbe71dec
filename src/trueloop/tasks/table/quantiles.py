"""Exact quantiles of more values than fit into memory, in two to four passes over them.

Radix selection: ordered as unsigned integers, the values are counted by their next 16 bits in each
pass, and only those that share the bits found so far are looked at again. Memory is a few
histograms of 65,536 counts, however many values there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Counts = npt.NDArray[np.int64]

_DIGIT = 16
_FEW = 4096
"""Different values among those looked at, up to which they are kept themselves."""


class Quantiles:
    """The quantiles `shares` (0 to 1) of all values that are added, as `numpy.quantile` has them.

    Until `is_done`, every value is added once more, and `end_pass` called after the last. `single`
    says that each value is one of float32, which halves the passes.
    """

    def __init__(self, shares: Sequence[float], *, single: bool = False) -> None:
        self.count = 0
        self.is_done = False
        self._shares = list(shares)
        self._kind: Any = np.uint32 if single else np.uint64
        self._width = 32 if single else 64
        self._known = 0
        self._found: dict[int, float] = {}
        self._wanted: dict[int, tuple[int, int]] = {}
        self._bins: dict[int, _Bin] = {0: _Bin()}

    def add(self, values: Floats) -> None:
        """Some of the values: float64, finite, in any order."""
        if not self._known:
            self.count += len(values)
        keys = self._keys(values)
        left = self._width - self._known - _DIGIT
        if not self._known:
            self._bins[0].add(keys >> self._kind(left), values)
            return
        prefixes = keys >> self._kind(self._width - self._known)
        for prefix, bin_ in self._bins.items():
            chosen = np.flatnonzero(prefixes == prefix)
            if len(chosen):
                digits = (keys[chosen] >> self._kind(left)) & self._kind(0xFFFF)
                bin_.add(digits, values[chosen])

    def end_pass(self) -> None:
        """All values have been added: say which of them are to be looked at again."""
        if not self._known:
            ranks = {rank for share in self._shares for rank in self._ranks(share)}
            self._wanted = {rank: (0, rank) for rank in ranks} if self.count else {}
        following: dict[int, _Bin] = {}
        for rank, (prefix, within) in list(self._wanted.items()):
            value = self._bins[prefix].value(within)
            if value is not None:
                self._found[rank] = value
                del self._wanted[rank]
                continue
            digit, count, within = self._bins[prefix].digit(within)
            prefix = (prefix << _DIGIT) | digit
            self._wanted[rank] = prefix, within
            if prefix not in following:
                following[prefix] = _Bin(count)
        self._known += _DIGIT
        self._bins = following
        if self._known == self._width:
            for rank, (prefix, _) in self._wanted.items():
                self._found[rank] = self._value(prefix)
            self._wanted = {}
        self.is_done = not self._wanted

    def values(self) -> Floats:
        """The quantiles, float64, in the order of `shares`. There must be a value."""
        assert self.is_done
        assert self.count
        found = []
        for share in self._shares:
            low, high = self._ranks(share)
            part = share * (self.count - 1) - low
            found.append(float(np.quantile([self._found[low], self._found[high]], part)))
        return np.array(found)

    def _ranks(self, share: float) -> tuple[int, int]:
        """The places, in ascending order of the values, around the quantile."""
        low = int(np.floor(share * (self.count - 1)))
        return low, min(low + 1, self.count - 1)

    def _keys(self, values: Floats) -> npt.NDArray[Any]:
        """Unsigned integers in the order of the values: sign and magnitude made a plain order."""
        floats = (values + 0.0).astype(np.float32 if self._width == 32 else np.float64, copy=False)
        bits = floats.view(self._kind)
        top = self._kind(1 << (self._width - 1))
        keys: npt.NDArray[Any] = bits ^ (
            (bits >> self._kind(self._width - 1)) * (top - self._kind(1)) + top
        )
        return keys

    def _value(self, key: int) -> float:
        top = 1 << (self._width - 1)
        bits = key ^ top if key & top else key ^ (2 * top - 1)
        kind = np.float32 if self._width == 32 else np.float64
        return float(np.array([bits], dtype=self._kind).view(kind)[0])


class _Bin:
    """The values that share their first bits, `count` of them where that is known."""

    def __init__(self, count: int | None = None) -> None:
        self._counts: Counts | None = None
        self._different: dict[float, int] | None = {}
        self._kept: list[Floats] | None = None
        if count is not None and count <= 1 << _DIGIT:  # no more memory than their counts
            self._kept = []

    def add(self, digits: npt.NDArray[Any], values: Floats) -> None:
        if self._kept is not None:
            self._kept.append(values)
            return
        if self._counts is None:
            self._counts = np.zeros(1 << _DIGIT, dtype=np.int64)
        self._counts += np.bincount(digits.astype(np.int64), minlength=1 << _DIGIT)
        if self._different is None:
            return
        if (values[0] == values).all():
            different, counts = values[:1], np.array([len(values)])
        else:
            different, counts = np.unique(values, return_counts=True)
        for value, count in zip(different[:_FEW].tolist(), counts[:_FEW].tolist(), strict=True):
            self._different[value] = self._different.get(value, 0) + count
        if len(different) > _FEW or len(self._different) > _FEW:
            self._different = None

    def value(self, rank: int) -> float | None:
        """The value of this rank, if it is known."""
        if self._kept is not None:
            values = np.sort(np.concatenate(self._kept))
            self._kept = [values]
            return float(values[rank])
        if self._different is None:
            return None
        known = sorted(self._different)
        ends = np.cumsum([self._different[value] for value in known])
        return known[int(np.searchsorted(ends, rank, side="right"))]

    def digit(self, rank: int) -> tuple[int, int, int]:
        """The next digit of the value of this rank, how many have it, and the rank among those."""
        assert self._counts is not None
        ends = np.cumsum(self._counts)
        digit = int(np.searchsorted(ends, rank, side="right"))
        count = int(self._counts[digit])
        return digit, count, rank - int(ends[digit]) + count
