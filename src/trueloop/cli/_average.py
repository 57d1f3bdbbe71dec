"""The options of averaged weights: --ema and --swa."""

from __future__ import annotations

from trueloop.cli._values import check_length
from trueloop.errors import ConfigError
from trueloop.step import EMA, SWA
from trueloop.tasks import Recipe


def average(recipe: Recipe) -> EMA | SWA | None:
    """How the step averages the weights; None for not at all."""
    if recipe.ema is not None:
        return EMA(recipe.ema, warmup=recipe.ema_warmup)
    return None if recipe.swa is None else SWA(start=recipe.swa)


def check_average(recipe: Recipe) -> None:
    """Raise `ConfigError` for options that cannot work."""
    if recipe.ema is not None and not 0 <= recipe.ema < 1:
        raise ConfigError(f"--ema must be from 0 to below 1, not {recipe.ema:g}: write --ema 0.999")
    if recipe.ema is not None and recipe.swa is not None:
        raise ConfigError(
            f"--ema {recipe.ema:g} and --swa {recipe.swa} are two averages of the weights: write "
            "one of them"
        )
    if recipe.ema_warmup and recipe.ema is None:
        raise ConfigError("--ema-warmup is for --ema: write --ema 0.999 with it")
    check_length("--swa", recipe.swa)
