"""Batch transforms that mix samples: mixup and CutMix, for `Feed(transform=...)`.

Each is `transform(batch, draws)`. How a batch is mixed is a function of (seed, epoch, its samples):
a resumed run mixes as one that was not stopped. On several ranks each mixes its own part of the
global batch.

A batch is (inputs, targets), inputs of shape (B, ...) in floating point. Each sample is mixed with
the one before it in the batch, by a separate share. Class indices become soft targets of shape
(B, classes): losses that take probabilities, such as `nn.CrossEntropyLoss`, then have the loss
share · loss(own target) + (1 - share) · loss(other target) of each sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from trueloop import _options
from trueloop.device import is_immediate
from trueloop.errors import ConfigError, DataError
from trueloop.feed.draws import Draws

__all__ = ["compose", "cutmix", "mixup", "random_choice"]

Transform = Callable[[Any, Draws], Any]


def mixup(alpha: float = 0.2, *, classes: int | None = None) -> Transform:
    """Mixup: share · each sample + (1 - share) · the one before it in the batch.

    Zhang, Cisse, Dauphin and Lopez-Paz, "mixup: beyond empirical risk minimization", ICLR 2018. The
    share is drawn from Beta(alpha, alpha), for each sample.

    Args:
        alpha: above 0: the larger, the more samples are mixed in equal parts. 0.2 for images of
            many classes.
        classes: how many there are, where targets are class indices (B,); None for targets in
            floating point, of any shape (B, ...), which are mixed as the inputs are.

    Returns:
        The transform.

    Raises:
        ConfigError: a value that cannot work.
    """
    alpha = _options.positive("alpha", alpha, "0.2")
    classes = _checked_classes(classes)

    def transform(batch: Any, draws: Draws) -> tuple[Tensor, Tensor]:
        inputs, targets = _pair(batch, "mixup")
        soft = _soft(targets, classes, inputs)
        share = draws.tensor(draws.generator().beta(alpha, alpha, len(inputs)))
        return _mean(inputs, share), _mean(soft, share)

    return transform


def cutmix(alpha: float = 1.0, *, classes: int | None = None) -> Transform:
    """CutMix: a box of each image is replaced by that of the one before it in the batch.

    Yun, Han, Oh, Chun, Choe and Yoo, "CutMix: regularization strategy to train strong classifiers
    with localizable features", ICCV 2019. The box has about 1 - share of the area, share drawn from
    Beta(alpha, alpha) for each image, and its centre is anywhere; targets are mixed by the area
    that the box has within the image.

    Args:
        alpha: above 0; 1 draws the share uniformly, as the paper does.
        classes: as `mixup` has it.

    Returns:
        The transform, for inputs of shape (B, C, H, W).

    Raises:
        ConfigError: a value that cannot work.
    """
    alpha = _options.positive("alpha", alpha, "1.0")
    classes = _checked_classes(classes)

    def transform(batch: Any, draws: Draws) -> tuple[Tensor, Tensor]:
        images, targets = _pair(batch, "cutmix")
        if images.ndim != 4:
            raise DataError(
                f"cutmix takes images of shape (B, C, H, W), and these are {tuple(images.shape)}: "
                "use mixup, or put a transform before it that gives them this shape"
            )
        soft = _soft(targets, classes, images)
        generator = draws.generator()
        share = draws.tensor(generator.beta(alpha, alpha, len(images)))
        centre = draws.tensor(generator.random_sample((len(images), 2)))
        rows, columns = (
            _inside(size, centre[:, k], (1 - share).sqrt())
            for k, size in enumerate(images.shape[2:])
        )
        box = rows[:, :, None] & columns[:, None, :]  # (B, H, W)
        kept = 1 - box.float().mean((1, 2))
        return torch.where(box[:, None], images.roll(1, 0), images), _mean(soft, kept)

    return transform


def compose(*transforms: Transform) -> Transform:
    """Several transforms, one after the other: an augmentation, and then mixup.

    Args:
        transforms: each is `transform(batch, draws) -> batch`.

    Returns:
        The transform.

    Raises:
        ConfigError: none is given, or one is not a function of (batch, draws).
    """
    steps = _checked(transforms, "compose")

    def transform(batch: Any, draws: Draws) -> Any:
        for step in steps:
            batch = step(batch, draws)
        return batch

    return transform


def random_choice(*transforms: Transform) -> Transform:
    """One of several transforms for each batch, each equally often: mixup or CutMix.

    Args:
        transforms: each is `transform(batch, draws) -> batch`.

    Returns:
        The transform.

    Raises:
        ConfigError: none is given, or one is not a function of (batch, draws).
    """
    choices = _checked(transforms, "random_choice")

    def transform(batch: Any, draws: Draws) -> Any:
        return choices[draws.generator().randint(len(choices))](batch, draws)

    return transform


def _checked(transforms: tuple[Transform, ...], name: str) -> tuple[Transform, ...]:
    if not transforms:
        raise ConfigError(f"{name}() has no transform: write {name}(mixup(), cutmix())")
    for number, one in enumerate(transforms):
        _options.function(
            f"transforms[{number}]", one, "batch, draws", f"{name}(mixup(), cutmix())"
        )
    return transforms


def _checked_classes(classes: int | None) -> int | None:
    return None if classes is None else _options.whole("classes", classes, 2, 10)


def _pair(batch: Any, name: str) -> tuple[Tensor, Tensor]:
    """Inputs and targets; `DataError` for what cannot be mixed."""
    is_pair = isinstance(batch, (tuple, list)) and len(batch) == 2
    if not (is_pair and all(isinstance(part, Tensor) and part.ndim for part in batch)):
        raise DataError(
            f"{name} takes batches of two tensors, (inputs, targets), and this one is "
            f"{_options.kind_of(batch)}: use a transform of your own"
        )
    inputs, targets = batch
    if name == "mixup" and not inputs.is_floating_point():
        raise DataError(
            f"mixup averages inputs in floating point, and these are {inputs.dtype}: write "
            "compose(lambda batch, draws: (batch[0].float() / 255, batch[1]), mixup(...))"
        )
    return inputs, targets


def _soft(targets: Tensor, classes: int | None, inputs: Tensor) -> Tensor:
    """The targets in floating point: class indices as one-hot rows."""
    if targets.is_floating_point():
        return targets
    if classes is None:
        raise DataError(
            f"the targets are class indices ({targets.dtype}), and their number is not known: "
            "write classes=10"
        )
    if targets.ndim != 1:
        raise DataError(
            f"the targets have the shape {tuple(targets.shape)}, and class indices to mix have "
            "(B,): give one class for each sample"
        )
    most = int(targets.max()) if is_immediate(targets.device) else 0  # else the loss looks
    if most >= classes:
        raise DataError(
            f"the targets have the class {most}, and classes={classes}: write classes={most + 1}"
        )
    hot = F.one_hot(targets.long(), classes)
    return hot.to(inputs.dtype if inputs.is_floating_point() else torch.float32)


def _mean(values: Tensor, share: Tensor) -> Tensor:
    """share · each sample + (1 - share) · the one before it in the batch."""
    weight = share.to(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
    return torch.lerp(values.roll(1, 0), values, weight)


def _inside(size: int, centre: Tensor, length: Tensor) -> Tensor:
    """Which of `size` pixels are in a stretch of `length` (a share of them) around `centre`, bool
    (B, size); what is beyond the image is cut off."""
    middle = (centre * size).floor()
    half = ((length * size).floor() / 2).floor()
    low, high = middle - half, middle + half
    pixels = torch.arange(size, device=centre.device)
    return (pixels >= low[:, None]) & (pixels < high[:, None])
