"""Weighted sampling: draws with replacement that are a function of (seed, epoch, position).

An epoch of n samples has n draws. The weights, scaled to a sum of n and laid end to end, cover the
line from 0 to n; each of the n stretches of length 1 gives one draw, at a point that is uniform
within it, and the shuffled order says which position takes which stretch. That is stratified
resampling (Kitagawa, "Monte Carlo filter and smoother", 1996): a sample is expected as often as
with independent draws, n·w/Σw times, but never misses or repeats by more than 1 of that to either
side. With equal weights it is an ordinary shuffle.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from trueloop import _options
from trueloop.errors import ConfigError, DataError
from trueloop.feed.order import Indices, SampleOrder
from trueloop.feed.parts import Stretch
from trueloop.feed.shards.dataset import Shards
from trueloop.seed import mix_array

BALANCED = "balanced"
"""The weights that draw each class equally often."""

# Sets the words for the draws apart from those for the order and the samples.
_WEIGHTED = 0x77656967687473
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class SampleWeights:
    """The weights of the samples, in a table of 16 bytes a sample.

    The sum of the weights is an integer, so that draws do not change with rounding, and samples of
    equal weights are neighbours: a class whose samples have a weight of its own gets its share of
    every epoch to within two draws.
    """

    def __init__(self, weights: npt.NDArray[np.float64]) -> None:
        size = len(weights)
        # A power of two: the product is exact. The sum stays below 2**62.
        scale = 61 - math.frexp(float(weights.max()))[1] - size.bit_length()
        whole = np.ldexp(weights, scale).astype(np.int64)
        self._samples = np.argsort(whole, kind="stable").astype(np.int64, copy=False)
        self._ends = np.cumsum(whole[self._samples])
        self.width = np.uint64(int(self._ends[-1]) // size)
        """Of one draw's stretch, of which there is one for each sample."""
        self.digest = hashlib.sha256(whole.tobytes()).hexdigest()[:16]
        """Of the weights, for the state of a feed."""

    def __len__(self) -> int:
        return len(self._samples)

    def draw(self, stretches: Indices, words: npt.NDArray[np.uint64]) -> tuple[Indices, Indices]:
        """The sample that each stretch draws, and how many whole stretches it covered before.

        Args:
            stretches: their numbers, int64, any shape.
            words: random bits of each.
        """
        high, low = self.width >> _HALF, self.width & _LOW
        # word · width / 2**64, from the upper 32 bits of the word.
        within = (words >> _HALF) * high + (((words >> _HALF) * low) >> _HALF)
        points = stretches * np.int64(self.width) + within.astype(np.int64)
        places = np.searchsorted(self._ends, points, side="right")
        begins: Indices = np.where(places > 0, self._ends[places - 1], 0)
        before = stretches - begins // np.int64(int(self.width))
        return self._samples[places], before


class WeightedOrder(SampleOrder):
    """The samples of one epoch, drawn by weight: see the file's head."""

    def __init__(self, weights: SampleWeights, seed: int, epoch: int) -> None:
        super().__init__(len(weights), seed, epoch)
        self._weights = weights
        self._words = (seed, epoch, _WEIGHTED)

    def at(self, positions: npt.ArrayLike) -> Indices:
        return self._drawn(positions)[0]

    def span(self, start: int, stop: int) -> Indices:
        return self.at(np.arange(start, stop, dtype=np.int64))

    def keyed_batches(self, stretches: Sequence[Stretch]) -> Iterator[tuple[Indices, Indices]]:
        """A sample that comes again in an epoch has a key of its own for each time."""
        for stretch in stretches:
            for batch in stretch.chunks(stretch.width):
                indices, before = self._drawn(batch.positions())
                yield indices, indices + self.size * before

    def _drawn(self, positions: npt.ArrayLike) -> tuple[Indices, Indices]:
        stretches = super().at(positions)
        words = mix_array(stretches.astype(np.uint64), *self._words)
        return self._weights.draw(stretches, words)


def weights_of(
    value: Any, data: Any, samples: int | None, *, shuffle: bool
) -> SampleWeights | None:
    """The `weights` that `Feed` was given for `data` of so many samples; None for None.

    Raises `ConfigError` or `DataError`.
    """
    if value is None:
        return None
    if not shuffle:
        raise ConfigError("weights draws the samples at random: write shuffle=True with it")
    if isinstance(data, Shards):
        raise ConfigError("Shards are read in the order of their files: leave out weights")
    if samples is None:
        raise ConfigError(
            "weights needs samples that can be reached by index, and this data set only gives a "
            "stream: leave it out, or give the data set __getitem__ and __len__"
        )
    if isinstance(value, str):
        _options.choice("weights", value, (BALANCED,))
        value = balanced(labels_of(data))
    try:
        weights = np.asarray(value.cpu() if isinstance(value, torch.Tensor) else value)
        weights = weights.astype(np.float64)
    except (TypeError, ValueError):
        weights = np.empty((0, 0))
    if weights.ndim != 1:
        raise ConfigError(
            f"weights={_options.shown(value)} is not one number for each sample: write "
            "weights='balanced', or an array of shape (samples,)"
        )
    if len(weights) != samples:
        raise ConfigError(
            f"weights has {len(weights)} numbers and the data {samples} samples: give one for each"
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ConfigError(
            "weights contains a NaN, an infinite or a negative number, or only zeros: give numbers "
            "from 0 up, of which one at least is not 0"
        )
    return SampleWeights(weights)


def balanced(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """SampleWeights by which every class that `labels` has is drawn equally often."""
    _, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[classes])


def labels_of(data: Any) -> npt.NDArray[np.int64]:
    """The class of each sample, where that can be read off without fetching the samples.

    Raises `ConfigError` where it cannot.
    """
    rows: Any = None
    while isinstance(data, torch.utils.data.Subset) and not hasattr(data, "targets"):
        inner = np.asarray(data.indices)
        rows, data = (inner if rows is None else inner[rows]), data.dataset
    found = _targets(data)
    if found is None:
        raise ConfigError(
            "weights='balanced' needs (inputs, targets), or a data set with `targets`: give an "
            "array of weights instead, one for each sample"
        )
    labels = np.asarray(found.cpu() if isinstance(found, torch.Tensor) else found)
    is_whole = labels.dtype.kind in "iub" or (
        labels.dtype.kind == "f" and bool(np.isin(labels, (0, 1)).all())
    )
    if labels.ndim != 1 or not is_whole:
        raise DataError(
            f"weights='balanced' needs one class index for each sample, and the targets are "
            f"{labels.dtype} of shape {labels.shape}: give an array of weights instead"
        )
    labels = labels.astype(np.int64)
    return labels if rows is None else labels[rows]


def _targets(data: Any) -> Any:
    for name in ("targets", "labels"):
        if (found := getattr(data, name, None)) is not None and not callable(found):
            return found
    if isinstance(data, torch.utils.data.TensorDataset):
        data = data.tensors
    if isinstance(data, Mapping):
        return next((data[name] for name in ("targets", "labels", "target") if name in data), None)
    return data[1] if isinstance(data, (tuple, list)) and len(data) == 2 else None
