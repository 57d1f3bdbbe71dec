"""Random numbers for whole batches, each a function of (seed, epoch, sample index, column)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from trueloop.feed.order import Indices
from trueloop.seed import mix_array


class Draws:
    """The random draws of a `transform`: row i belongs to sample i, whichever process computes it.

    A sample's numbers depend on (seed, epoch, its index) and on the draws made before in the same
    transform, never on the batch it came in, the position it was resumed from or the workers.

    Args:
        seed: that of the feed.
        epoch: from 0.
        indices: of the batch's samples, int64, shape (B,).
        device: where the numbers are put; None: the CPU.
        keys: in place of `indices` for the draws, where a sample comes more than once in an epoch.
    """

    def __init__(
        self,
        seed: int,
        epoch: int,
        indices: Indices,
        device: torch.device | None = None,
        keys: Indices | None = None,
    ) -> None:
        self.indices = indices
        """Sample indices of the batch, int64, shape (B,)."""
        self._device = device
        words = (indices if keys is None else keys).astype(np.uint64)
        self._keys = mix_array(words, seed, epoch)[:, None]
        self._column = 0

    def __call__(self, k: int = 1) -> Tensor:
        """Uniform numbers in [0, 1), multiples of 2**-24.

        Args:
            k: numbers for each sample.

        Returns:
            float32 of shape (B, k).
        """
        words = self._words(k) >> np.uint64(40)
        return self._tensor(words.astype(np.float32) * np.float32(2.0**-24))

    def normal(self, k: int = 1) -> Tensor:
        """Standard normal numbers, by Box and Muller (1958).

        Args:
            k: numbers for each sample.

        Returns:
            float32 of shape (B, k).
        """
        pairs = (k + 1) // 2
        words = (self._words(2 * pairs) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        # 1 - u lies in (0, 1], where the logarithm is finite.
        radius = np.sqrt(-2.0 * np.log(1.0 - words[:, 0::2]))
        angle = 2.0 * np.pi * words[:, 1::2]
        both = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=2)
        return self._tensor(both.reshape(len(words), 2 * pairs)[:, :k].astype(np.float32))

    def generator(self) -> np.random.RandomState:
        """A generator for the whole batch.

        A function of (seed, epoch, the batch's first sample) and of the draws made before.

        Returns:
            One of numpy's `RandomState`, whose streams are the same in each version of numpy.
        """
        word = int(self._words(1)[0, 0])
        return np.random.RandomState([word & 0xFFFFFFFF, word >> 32])

    def tensor(self, values: npt.NDArray[np.float64]) -> Tensor:
        """Numbers of `generator` where the batch is.

        Args:
            values: of any shape.

        Returns:
            float32 of that shape, on the batch's device.
        """
        return self._tensor(values.astype(np.float32))

    def _words(self, k: int) -> npt.NDArray[np.uint64]:
        """`mix(seed, epoch, index, column)` for the next `k` columns, uint64 of shape (B, k)."""
        columns = np.arange(self._column, self._column + k, dtype=np.uint64)
        self._column += k
        return mix_array(self._keys + columns)

    def _tensor(self, values: npt.NDArray[np.float32]) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        if self._device is None or self._device.type == "cpu":
            return tensor
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor.to(self._device)
