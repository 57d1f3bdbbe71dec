"""Which strategy `Step(..., parallel=...)` uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from trueloop import _options, ranks
from trueloop.errors import ConfigError
from trueloop.step import sharding
from trueloop.step.materialise import is_on_meta
from trueloop.step.parallel import DDP, DDPOptions, OwnDDP, Parallel, wrapped
from trueloop.step.sharding import FSDPOptions


def by_option(parallel: Any, model: nn.Module, optimizers: Sequence[Optimizer]) -> Parallel:
    """The strategy for `parallel`; `ConfigError` where it cannot be."""
    wanted = _name_of(parallel)
    if (ddp := wrapped(model)) is not None:
        _refuse_other(wanted, "ddp", "is wrapped in DistributedDataParallel")
        return OwnDDP(model, ddp)
    if (own := sharding.sharded_by_user(model, optimizers)) is not None:
        _refuse_other(wanted, "fsdp", "was sharded with fully_shard")
        return own
    options = parallel if isinstance(parallel, FSDPOptions) else FSDPOptions()
    if not ranks.is_distributed():
        if wanted == "fsdp" and is_on_meta(model):
            sharding.materialise_whole(model, optimizers, options)
        return Parallel(model)
    if wanted == "ddp":
        chosen = parallel if isinstance(parallel, DDPOptions) else DDPOptions()
        return DDP(model, optimizers, chosen)
    if wanted == "fsdp":
        return sharding.shard(model, optimizers, options)
    raise ConfigError(
        f"{ranks.world_size()} ranks train together, and parallel is None, so each would train a "
        "separate model: write Step(..., parallel='ddp'), or 'fsdp' for a model that is too large "
        "for one rank"
    )


def _name_of(parallel: Any) -> str | None:
    if parallel is None:
        return None
    if isinstance(parallel, DDPOptions):
        return "ddp"
    if isinstance(parallel, FSDPOptions):
        return "fsdp"
    return _options.choice("parallel", parallel, ("ddp", "fsdp"))


def _refuse_other(wanted: str | None, found: str, how: str) -> None:
    if wanted not in (None, found):
        raise ConfigError(
            f"parallel is {wanted!r}, and the model {how}: give the bare model, or leave parallel "
            "out"
        )
