"""A pass of a model over a feed without training: its modes, its batches on each rank."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from trueloop import _options, ranks
from trueloop.errors import ConfigError, DataError
from trueloop.feed import Feed
from trueloop.feed.external_loader import is_loader
from trueloop.feed.kinds import check_kind
from trueloop.step import Step, sharding


@contextmanager
def evaluating(
    model: nn.Module, *, gradients: bool = False, together: bool = True
) -> Iterator[None]:
    """Eval mode, and inference mode unless `gradients`; afterwards each module's own mode again.

    A batch norm that was in eval mode during training stays there. On many ranks that do this
    `together` each has rank 0's buffers from here on. A sharded model runs without inference mode:
    training could not use the memory that it gathers its parameters in.
    """
    modes = [(module, module.training) for module in model.modules()]
    is_sharded = bool(sharding.fsdp_modules(model))
    without = torch.no_grad() if is_sharded else torch.inference_mode()
    if together:
        sharding.sync_buffers(model)
    if any(training for _, training in modes):
        model.eval()
    try:
        with torch.enable_grad() if gradients else without:
            yield
    finally:
        if is_sharded:
            sharding.reshard(model)
        for module, training in modes:
            if module.training is not training:  # a module takes long to set an attribute
                module.training = training


class EvaluationBatch(NamedTuple):
    """A batch that this rank runs."""

    number: int
    """Of the batch, among those of all ranks, from 0 on."""
    batch: Any
    counts: bool
    """False for a stand-in, which runs so that all ranks make the same number of forwards."""


def turns(feed: Feed) -> Generator[EvaluationBatch, None, None]:
    """The whole batches of `feed` that are this rank's, in the feed's order; each is noted as
    progress."""
    first, count = ranks.data_parallel()
    before = ranks.here.phase
    batches = feed.whole_batches()
    try:
        for step, batch in enumerate(batches):
            ranks.here.move("evaluating", batch=step)
            yield EvaluationBatch(step * count + first, batch, not batches.stand_in)
    finally:
        batches.close()
        ranks.here.move(before)


def device_of(model: nn.Module) -> torch.device:
    """Where the model computes: its parameters' device, or, for shards kept in the host's memory,
    that of the ranks."""
    for parameter in model.parameters():
        mesh = getattr(parameter, "device_mesh", None)
        return parameter.device if mesh is None else sharding.device_of_mesh(mesh)
    return torch.device("cpu")


def check_model(model: Any, call: str) -> None:
    if isinstance(model, Step):
        raise ConfigError(
            "the model is a Step: write step.model, e.g. evaluate(step.model, feed, step.loss_fn)"
        )
    _options.model(model, call)


def as_feed(data: Any, name: str = "feed") -> Feed:
    """`data` itself if it is a feed; a feed of it if it is a `DataLoader`.

    Raises `DataError`, with the argument's `name`, for data that are not batches yet.
    """
    if isinstance(data, Feed):
        return data
    if not is_loader(data):
        check_kind(data)
        shown = "(x, y)" if isinstance(data, (tuple, list)) else "data"
        raise DataError(
            f"{name} is {_options.kind_of(data)}, and not a Feed or a DataLoader: write "
            f"Feed({shown}, batch_size=32)"
        )
    return Feed(data)
