"""The options of mixed samples, --mixup and --cutmix, and of parts that are frozen at first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from trueloop.cli._values import above_0, check_length
from trueloop.errors import ConfigError, UserError
from trueloop.feed import Feed
from trueloop.tasks import Recipe, Task, limits
from trueloop.transforms import compose, cutmix, mixup, random_choice

Transform = Callable[[Any, Any], Any]


def check_mixing(recipe: Recipe) -> None:
    """Raise `ConfigError` for values that cannot work."""
    above_0("--mixup", recipe.mixup, limits.MOST_RATE, "0.2")
    above_0("--cutmix", recipe.cutmix, limits.MOST_RATE, "1.0")
    for name, length in (unfreeze(recipe) or {}).items():
        check_length(f"--unfreeze {name}", length)


def unfreeze(recipe: Recipe) -> dict[str, str] | None:
    """The parts of --unfreeze, as `Step` takes them; `ConfigError` for what is not NAME=LENGTH."""
    if recipe.unfreeze is None:
        return None
    parts: dict[str, str] = {}
    for each in recipe.unfreeze:
        name, found, length = (word.strip() for word in each.partition("="))
        if not (name and found and length):
            raise ConfigError(
                f"--unfreeze {each!r} is not a module and a length: write --unfreeze "
                '"backbone=2 epochs"'
            )
        if name in parts:
            raise ConfigError(f"--unfreeze names {name} twice: write it once")
        parts[name] = length
    return parts


def check_unfreeze(recipe: Recipe, task: Task) -> None:
    """Raise `ConfigError` where the whole model starts from random weights."""
    if recipe.unfreeze is not None and task.random_weights:
        raise ConfigError(
            "--unfreeze freezes parts that have been trained before, and this model starts from "
            "random weights: leave it out, or write a task of your own with a pretrained model"
        )


def mixed(recipe: Recipe, task: Task, augment: Transform | None) -> Transform | None:
    """The transform of training batches: the task's own, then mixup or CutMix, each batch one of
    them. `ConfigError` for a task without classes."""
    stated = _stated(recipe)
    if not stated:
        return augment
    if task.kind not in ("multiclass", "binary", "multilabel"):
        raise ConfigError(
            f"{stated} mixes the classes of samples, and this task is a {task.kind}: leave it out"
        )
    classes = task.n_classes if task.kind == "multiclass" else None
    chosen = []
    if recipe.mixup is not None:
        chosen.append(mixup(recipe.mixup, classes=classes))
    if recipe.cutmix is not None:
        chosen.append(cutmix(recipe.cutmix, classes=classes))
    both = chosen[0] if len(chosen) == 1 else random_choice(*chosen)
    soft = _Floating(targets=classes is None)
    return compose(soft, both) if augment is None else compose(augment, soft, both)


class _Floating:
    """Images of uint8, and targets that are not indices of classes, in floating point."""

    def __init__(self, *, targets: bool) -> None:
        self.targets = targets

    def __call__(self, batch: Any, draws: Any) -> Any:
        if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
            return batch  # which the mixing refuses
        inputs, targets = batch
        if isinstance(inputs, Tensor) and inputs.ndim == 4:
            inputs = inputs.float()
        if self.targets and isinstance(targets, Tensor):
            targets = targets.float()
        return inputs, targets


def check_mixes(recipe: Recipe, train: Feed) -> None:
    """Raise `ConfigError` where the first training batch cannot be mixed."""
    if not (stated := _stated(recipe)):
        return
    batches = train.epoch(0)
    try:
        next(batches, None)
    except UserError as error:
        cause = str(error).rpartition(": ")[0]
        raise ConfigError(f"{stated} cannot mix these data ({cause}): leave it out") from None
    finally:
        if hasattr(batches, "close"):
            batches.close()


def _stated(recipe: Recipe) -> str:
    given = {"--mixup": recipe.mixup, "--cutmix": recipe.cutmix}
    return " and ".join(f"{name} {alpha:g}" for name, alpha in given.items() if alpha is not None)
