"""Statistics of batch norm for weights that no batch has gone through: those of an average."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from trueloop import ranks, seed
from trueloop.errors import ConfigError, DataError
from trueloop.step.parallel import LossFn
from trueloop.step.precision import Precision


def norms_of(model: nn.Module) -> list[_BatchNorm]:
    """Its batch norms that keep statistics, without frozen ones (in eval mode)."""
    return [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.running_mean is not None and module.training
    ]


def update_bn(
    model: nn.Module, loss_fn: LossFn, precision: Precision, batches: Iterable[Any]
) -> None:
    """Set the running statistics to the means over `batches`, each batch weighing the same, as
    torch's `swa_utils.update_bn` does.

    All else is in eval mode meanwhile, as it will be when the statistics are used: `update_bn` of
    torch has dropout on. Modes, momenta and the CPU's generators are afterwards what they were. On
    several ranks each has its own batches, and all get the statistics of all.
    """
    norms = norms_of(model)
    if not norms:
        raise ConfigError(
            "the model has no batch norm in train mode, whose statistics could be computed: call "
            "model.train() first, or leave out update_bn"
        )
    modes = [(module, module.training) for module in model.modules()]
    momenta = [norm.momentum for norm in norms]
    model.eval()
    for norm in norms:
        norm.train()
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
    try:
        with seed.rng_preserved(), torch.no_grad():
            _run(model, norms, loss_fn, precision, batches)
    finally:
        for module, training in modes:
            module.training = training
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


def _run(
    model: nn.Module,
    norms: list[_BatchNorm],
    loss_fn: LossFn,
    precision: Precision,
    batches: Iterable[Any],
) -> None:
    count = 0
    for batch in batches:
        stand_in = getattr(batches, "stand_in", False)
        before = [_statistics(norm) for norm in norms] if stand_in else []
        with precision.autocast():
            loss_fn(model, batch)
        count += not stand_in
        for norm, statistics in zip(norms, before, strict=False):
            _set(norm, statistics)
    if ranks.is_distributed():
        _share(norms, count)
    elif not count:
        raise DataError("there is nothing to compute statistics from: the feed yields no batch")


def _statistics(norm: _BatchNorm) -> tuple[Tensor, ...]:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    return tuple(
        one.clone() for one in (norm.running_mean, norm.running_var, norm.num_batches_tracked)
    )


def _set(norm: _BatchNorm, statistics: tuple[Tensor, ...]) -> None:
    for here, value in zip(
        (norm.running_mean, norm.running_var, norm.num_batches_tracked), statistics, strict=True
    ):
        assert here is not None
        here.copy_(value)


def _share(norms: list[_BatchNorm], count: int) -> None:
    """Give each rank the means over the batches of all."""
    mine = [[one.cpu() for one in _statistics(norm)] for norm in norms]
    everywhere = ranks.of_each_part((count, mine), "the other ranks' batch norm statistics")
    total = sum(n for n, _ in everywhere)
    if not total:
        raise DataError("there is nothing to compute statistics from: the feed yields no batch")
    for k, norm in enumerate(norms):
        mean, var = (
            sum((n / total) * found[k][part].double() for n, found in everywhere if n)
            for part in (0, 1)
        )
        _set(norm, (torch.as_tensor(mean), torch.as_tensor(var), torch.tensor(total)))
