"""Data sets that gather a whole batch at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from trueloop.errors import DataError, UserError
from trueloop.feed import transfer
from trueloop.feed.ahead import FetchAhead, remedy, users_code
from trueloop.feed.collate import reason_of
from trueloop.feed.kinds import length_of
from trueloop.feed.order import Indices, SampleOrder
from trueloop.feed.parts import Stretch


class BatchDataset(Dataset[Any]):
    """A map-style data set whose batches are gathered at once and not sample by sample.

    `Feed` calls `get_batch` in its own process, whatever `workers` says, and on a thread where that
    pays (`fetch_ahead`), never twice at once; a sample may differ from epoch to epoch.
    """

    _epoch = 0

    @abstractmethod
    def __len__(self) -> int:
        """Samples per epoch."""

    @abstractmethod
    def get_batch(self, indices: Indices, epoch: int) -> Any:
        """Return a batch: new CPU tensors, in a tuple or a dict.

        They depend only on the two arguments.

        Args:
            indices: of the samples, int64, shape (B,).
            epoch: from 0.
        """

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the samples that `__getitem__` returns; 0 at first.

        Args:
            epoch: from 0.
        """
        self._epoch = epoch

    def __getitem__(self, index: int) -> Any:
        """One sample, without the first dimension of a batch."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        batch = self.get_batch(np.array([index % len(self)]), self._epoch)
        return transfer.map_batch(batch, lambda tensor: tensor[0])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


class Batched:
    """A source of batches: a `BatchDataset`."""

    def __init__(self, dataset: BatchDataset) -> None:
        self.samples = length_of(dataset)
        self.is_stream = False
        self.device: torch.device | None = None
        self._dataset = dataset

    def batches(
        self,
        order: SampleOrder,
        epoch: int,
        stretches: Sequence[Stretch],
        device: torch.device | None,
        fetch_ahead: FetchAhead,
    ) -> Iterator[Any]:
        """The batches at these positions of the order; no others are gathered."""
        batches: Iterator[Any] = (
            self._gather(indices, epoch) for indices in order.batches(stretches)
        )
        if device is not None and device.type == "cuda":
            batches = fetch_ahead.over(map(transfer.pin, batches), device)
        return transfer.to_device(batches, device)

    def _gather(self, indices: Indices, epoch: int) -> Any:
        try:
            with users_code:
                return self._dataset.get_batch(indices, epoch)
        except UserError:
            raise
        except Exception as error:
            raise DataError(
                f"{type(self._dataset).__name__}.get_batch cannot gather the batch of sample "
                f"{indices[0]} to sample {indices[-1]}, {reason_of(error)}: fix it; it is called "
                f"with (indices, epoch){remedy()}"
            ) from error
