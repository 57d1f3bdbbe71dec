"""Loaders and streams that are split by rank already, and what the ranks must agree on then."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DistributedSampler

from trueloop import ranks
from trueloop.errors import ConfigError, DataError
from trueloop.feed.parts import RankShare

_END = object()


@dataclass(frozen=True)
class Split:
    """The description that a sampler or a data set gives of itself."""

    owner: str
    number: int
    count: int


def split_of(loader: Any) -> Split | None:
    """By which rank a loader, or a part of it, is split: one with the attributes `rank` and
    `num_replicas`, as torch's `DistributedSampler` has them, or a data set of Hugging Face's
    `split_dataset_by_node`; None if no part has such attributes."""
    chooser = getattr(loader, "batch_sampler", None)
    places = (loader, getattr(loader, "sampler", None), chooser, getattr(chooser, "sampler", None))
    for part in (*places, getattr(loader, "dataset", None)):
        node: Any = getattr(part, "_distributed", None)
        number, count = getattr(part, "rank", None), getattr(part, "num_replicas", None)
        if node is not None:
            number, count = getattr(node, "rank", None), getattr(node, "world_size", None)
        if isinstance(number, int) and isinstance(count, int):
            return Split(type(part).__name__, number, count)
    return None


def check_split(loader: Any, part: RankShare) -> None:
    """Raise `ConfigError` on several ranks unless `loader` gives this one its own samples."""
    if part.count == 1:
        return
    name, found = type(loader).__name__, split_of(loader)
    if found is None:
        raise ConfigError(
            f"each of the {part.count} ranks would read the same batches from this {name}: write "
            "Feed(loader.dataset, batch_size=...), or give the loader a "
            "torch.utils.data.DistributedSampler"
        )
    if (found.number, found.count) != (part.number, part.count):
        raise ConfigError(
            f"the {found.owner} takes the samples of rank {found.number} of {found.count}, and "
            f"this is rank {part.number} of {part.count}: write {found.owner}(..., "
            f"num_replicas={part.count}, rank={part.number})"
        )


def check_counts_once(loader: Any) -> None:
    """Raise `ConfigError` if an evaluation would count samples twice."""
    sampler = getattr(loader, "sampler", None)
    if not isinstance(sampler, DistributedSampler) or sampler.drop_last:
        return
    samples = len(sampler.dataset)  # type: ignore[arg-type]
    if again := sampler.total_size - samples:
        raise ConfigError(
            f"the DistributedSampler gives {again} of {samples} samples twice, so that all ranks "
            "have as many, and an evaluation would count them twice: write "
            "Feed(loader.dataset, batch_size=...)"
        )


def check_lengths(length: int | None) -> bool:
    """Raise `DataError` on every rank where their loaders differ in length; whether all have one.

    Every rank must call it.
    """
    lengths = ranks.gathered(length, "the lengths of the other ranks' loaders")
    if None in lengths:
        return False
    if len(set(lengths)) > 1:
        listed = ", ".join(f"rank {rank} {count}" for rank, count in enumerate(lengths))
        raise DataError(
            f"the ranks' loaders differ in length, in batches: {listed}; the longer ones would "
            "wait for ever: write Feed(loader.dataset, batch_size=...), or let the sampler drop or "
            "repeat samples"
        )
    return True


class Together:
    """Loaders whose lengths nobody knows, read on all ranks: that one has ended is known on each,
    without a wait, since the question is asked one batch ahead."""

    def __init__(self) -> None:
        self._group: Any = None

    def read(self, batches: Iterator[Any]) -> Iterator[Any]:
        """`batches`; raises `DataError` on every rank, at the same place, if one rank's loader ends
        before the others."""
        if self._group is None:
            # Its own group: it does not wait for gradients, and needs no accelerator.
            self._group = dist.new_group(backend="gloo")
        count = 0
        batch = next(batches, _END)
        answer = self._ask(batch is not _END)
        while self._have_all(answer, count):
            coming = next(batches, _END)
            answer = self._ask(coming is not _END)
            yield batch
            batch, count = coming, count + 1

    def _ask(self, has_one: bool) -> tuple[Tensor, Any]:
        flags = torch.tensor([float(has_one), -float(has_one)])
        return flags, dist.all_reduce(flags, op=dist.ReduceOp.MAX, group=self._group, async_op=True)

    def _have_all(self, answer: tuple[Tensor, Any], count: int) -> bool:
        flags, work = answer
        with ranks.waiting("whether the other ranks' loaders have more batches"):
            work.wait()
        any_has, all_have = bool(flags[0] > 0), bool(flags[1] < 0)
        if any_has and not all_have:
            raise DataError(
                f"the loaders of some ranks ended after {count} batches, and those of others have "
                "more: let every rank's loader give as many batches, or write Feed(data set, "
                "batch_size=...)"
            )
        return all_have


def check_same(sample: int, name: str) -> None:
    """Raise `DataError` on every rank if their `digest` of a stream's first sample differs."""
    digests = ranks.gathered(sample, "the other ranks' first sample")
    if len(set(digests)) > 1:
        raise DataError(
            f"the ranks read different samples from the {name}, of which Feed takes each rank's "
            "part: let it give the same stream on each (shuffle by a seed and set_epoch, do not "
            "split by rank), or put one that splits itself into a DataLoader"
        )


def digest(sample: Any) -> int:
    """A number that is the same for equal samples, in any process: of the tensors, arrays, numbers
    and text in it."""
    if isinstance(sample, Tensor):
        sample = sample.detach()
        plain = sample.is_cpu and sample.layout is torch.strided and not sample.is_quantized
        if not plain:
            return zlib.crc32(repr((sample.shape, sample.dtype)).encode())
        sample = sample.contiguous().view(-1).view(torch.uint8).numpy()
    if isinstance(sample, np.ndarray) and sample.dtype != object:
        return zlib.crc32(np.ascontiguousarray(sample).tobytes())
    if isinstance(sample, Mapping):
        return digest([part for pair in sample.items() for part in pair])
    if isinstance(sample, (list, tuple)):
        return zlib.crc32(repr([digest(part) for part in sample]).encode())
    if isinstance(sample, (bool, int, float, complex, str, bytes, np.generic)):
        return zlib.crc32(repr(sample).encode())
    return zlib.crc32(type(sample).__name__.encode())
