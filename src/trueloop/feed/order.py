"""The sample order as a function of (seed, epoch, position): computed, never remembered.

Up to `TABLE_SIZE` samples an epoch's order is the order of keyed 64-bit hashes of the indices, a
table of at most 512 KiB. Beyond, it is a keyed Feistel network: any position is reached at once, in
constant memory, whatever the size. Both use our own integer arithmetic, so that an order does not
change with the version of torch or numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from trueloop.feed.parts import Stretch
from trueloop.seed import mix, mix_array

Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

TABLE_SIZE = 65_536
"""Largest data set whose order is sorted rather than computed position by position."""
ROUNDS = 10
"""Rounds of the Feistel network. Four already hide the structure; the rest is margin."""

# Sets the words for the order apart from those for the samples, which start with (seed, epoch) too.
_ORDER = 0x6F72646572
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_CHUNK = 4096


class SampleOrder:
    """The order of `size` samples in one epoch: `SampleOrder(…).at(positions)` are sample indices.

    `shuffle=False` is 0, 1, 2, …; otherwise a pseudo-random permutation that depends only on (seed,
    epoch, size).
    """

    def __init__(self, size: int, seed: int, epoch: int, shuffle: bool = True) -> None:
        self.size = size
        self.in_sequence = not shuffle
        """Whether the order is 0, 1, 2, …"""
        self._table: Indices | None = None
        self._network: Feistel | None = None
        if shuffle and size <= TABLE_SIZE:
            self._table = sorted_hashes(size, seed, epoch)
        elif shuffle:
            self._network = Feistel(size, seed, epoch)

    def at(self, positions: npt.ArrayLike) -> Indices:
        """Sample indices at `positions` (integers in [0, size), any shape); a new int64 array."""
        places = np.asarray(positions, dtype=np.int64)
        if self._table is not None:
            return self._table[places]
        return self._network(places) if self._network is not None else places.copy()

    def span(self, start: int, stop: int) -> Indices:
        """Sample indices at positions `start` to `stop` - 1: an int64 array, not to be written."""
        if self._table is not None:
            return self._table[start:stop]
        return self.at(np.arange(start, stop, dtype=np.int64))

    def of(self, stretch: Stretch) -> Indices:
        """Sample indices of all batches of `stretch`, one after the other; not to be written."""
        if stretch.is_contiguous:
            return self.span(stretch.first, stretch.stop)
        return self.at(stretch.positions())

    def keyed_batches(self, stretches: Sequence[Stretch]) -> Iterator[tuple[Indices, Indices]]:
        """Sample indices batch by batch, and the keys of what these samples draw: the indices."""
        return ((indices, indices) for indices in self.batches(stretches))

    def batches(self, stretches: Iterable[Stretch]) -> Iterator[Indices]:
        """Sample indices batch by batch; computed in larger chunks."""
        for stretch in stretches:
            for chunk in stretch.chunks(_CHUNK):
                indices = self.of(chunk)
                for low in range(0, len(indices), stretch.width):
                    yield indices[low : low + stretch.width]


def sorted_hashes(size: int, seed: int, epoch: int) -> Indices:
    """A permutation of 0 … size - 1: the indices in the order of their keyed hashes.

    The hashes are the SplitMix64 stream that starts at the key. They are all different (the stream
    is a bijection of its counter), so every sorting algorithm gives the same permutation.
    """
    hashes = mix_array(np.arange(size, dtype=np.uint64) * _GOLDEN, seed, epoch, _ORDER)
    return np.argsort(hashes).astype(np.int64, copy=False)


class Feistel:
    """A keyed permutation of 0 … size - 1 that is evaluated at any positions, in O(1) memory.

    The generalised Feistel network over Z_a × Z_b, a·b ≥ size, of Black and Rogaway, "Ciphers with
    arbitrary finite domains" (CT-RSA 2002), with `ROUNDS` rounds of modular addition and cycle
    walking. With a = ⌈√size⌉ and b = ⌈size / a⌉ fewer than a values are outside, so almost no
    position walks at all.
    """

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        root = math.isqrt(size)
        self.a = root if root * root == size else root + 1
        self.b = -(-size // self.a)
        self._size = np.uint64(size)
        self._keys = [mix(seed, epoch, _ORDER, number) for number in range(ROUNDS)]

    def __call__(self, positions: Indices) -> Indices:
        """The images of `positions` (int64, in [0, size), any shape)."""
        images = self._once(positions.astype(np.uint64).ravel())
        while True:
            outside = np.flatnonzero(images >= self._size)
            if not len(outside):
                return images.astype(np.int64).reshape(positions.shape)
            images[outside] = self._once(images[outside])

    def _once(self, values: Words) -> Words:
        """The network itself, a permutation of 0 … a·b - 1."""
        a, b = np.uint64(self.a), np.uint64(self.b)
        left = values // b
        right = values - left * b
        for number, key in enumerate(self._keys):
            if number % 2 == 0:
                left = _add(left, right, key, a)
            else:
                right = _add(right, left, key, b)
        return left * b + right


def _add(half: Words, other: Words, key: int, modulus: np.uint64) -> Words:
    """(half + F(other)) mod `modulus`, where F is a keyed hash scaled onto [0, modulus)."""
    word = mix_array(other, key)
    # The high 64 bits of the 96-bit product word · modulus, for a modulus below 2**32: uniform to
    # within 2**-32, and no division.
    low = ((word & _LOW) * modulus) >> _HALF
    total = half + (((word >> _HALF) * modulus + low) >> _HALF)
    # total < 2 · modulus; below the modulus the difference wraps to something huge.
    return np.minimum(total, total - modulus)
