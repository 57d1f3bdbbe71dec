"""Whether a model's outputs and its targets fit a loss; each function raises `LossError` if not.

A message names the cause and ends with what to write. The functions that look at values, not only
at shapes, wait for the device: a loss calls them only on its first batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueloop._options import kind_of
from trueloop.errors import LossError


def shown(tensor: Tensor) -> str:
    """The shape as it is written in the field: `(64, 10)`."""
    return str(tuple(tensor.shape))


def are_tensors(task: str, outputs: Any, targets: Any) -> None:
    """Both are tensors of at least one sample, on the same device; outputs are floating point."""
    for name, value in (("the model returned", outputs), ("the targets are", targets)):
        if not isinstance(value, Tensor):
            raise LossError(
                f"{_loss(task)}: {name} {kind_of(value)}, not a tensor: "
                "write your own loss_fn(model, batch) that picks the tensor"
            )
    if not outputs.is_floating_point():
        raise LossError(
            f"{_loss(task)}: the outputs are {outputs.dtype}, not floating point: "
            "return the model's logits, not its decision"
        )
    if outputs.numel() == 0 or targets.numel() == 0:
        raise LossError(f"{_loss(task)}: the batch is empty: leave empty batches out of the feed")
    if outputs.device != targets.device:
        raise LossError(
            f"{_loss(task)}: the outputs are on {outputs.device}, the targets on {targets.device}: "
            "write Feed(..., device=...) or targets.to(outputs.device)"
        )


def _loss(task: str) -> str:
    """The name of the loss: one of ours by its task, one of torch's by its name."""
    return f"{task} loss" if task.islower() and "_" not in task else task


def _other(task: str, other: str) -> str:
    """The remedy for a loss of a different task, in the words in which this one was chosen."""
    if _loss(task) != task:
        return f"write the task {other!r}"
    return "write nn.BCEWithLogitsLoss()" if other == "binary" else "write nn.CrossEntropyLoss()"


def described(value: Any) -> str:
    """Shape and dtype of a tensor, e.g. `(4, 3) float32`; the kind of anything else."""
    if not isinstance(value, Tensor):
        return kind_of(value)
    return f"{shown(value)} {str(value.dtype).removeprefix('torch.')}"


def same_dimensions(task: str, outputs: Tensor, targets: Tensor) -> None:
    """Raise as `same_shape` where one shape cannot even be broadcast to the other."""
    try:
        torch.broadcast_shapes(outputs.shape, targets.shape)  # type: ignore[no-untyped-call]
    except RuntimeError:
        same_shape(task, outputs, targets)


def same_shape(task: str, outputs: Tensor, targets: Tensor) -> None:
    """The two have one shape; where they have not, torch would broadcast without a word."""
    if outputs.shape == targets.shape:
        return
    head = f"{_loss(task)}: outputs {shown(outputs)} against targets {shown(targets)}: "
    if outputs.ndim == targets.ndim + 1 and outputs.shape == (*targets.shape, 1):
        k = targets.ndim
        raise LossError(head + f"write outputs.squeeze({k}) in the model or targets.unsqueeze({k})")
    if targets.ndim == outputs.ndim + 1 and targets.shape == (*outputs.shape, 1):
        k = outputs.ndim
        raise LossError(
            head + f"write targets.squeeze({k}), or outputs.unsqueeze({k}) in the model"
        )
    if outputs.ndim == targets.ndim + 1 and outputs.shape[:1] + outputs.shape[2:] == targets.shape:
        if outputs.shape[1] == 1:
            raise LossError(head + "write targets.unsqueeze(1)")
        raise LossError(
            head + f"they must have the same shape; for {outputs.shape[1]} classes of which one "
            f"is right, {_other(task, 'multiclass')}"
        )
    raise LossError(head + "they must have the same shape: make the model's last layer fit")


def one_output(outputs: Tensor) -> None:
    """A binary model has one output per sample: (N,) or (N, 1)."""
    if outputs.ndim == 1 or (outputs.ndim == 2 and outputs.shape[1] == 1):
        return
    if outputs.ndim == 2 and outputs.shape[1] == 2:
        remedy = "write the task 'multiclass', or give the last layer one output"
    else:
        remedy = "write the task 'multilabel' for several yes-or-no outputs per sample"
    raise LossError(
        f"binary loss: outputs {shown(outputs)} are not one logit per sample, (N,) or (N, 1): "
        + remedy
    )


def columns(task: str, outputs: Tensor, classes: int | None) -> None:
    """Outputs have their classes on dimension 1, at least two, and as many as were announced."""
    if outputs.ndim < 2 or outputs.shape[1] < 2:
        raise LossError(
            f"{_loss(task)}: outputs {shown(outputs)} have fewer than two classes on dimension 1: "
            f"give the last layer one output per class, or {_other(task, 'binary')}"
        )
    if classes is not None and outputs.shape[1] != classes:
        remedy = f"give the model's last layer {classes} outputs"
        if outputs.ndim > 2 and outputs.shape[-1] == classes:
            remedy = "write outputs.movedim(-1, 1) in the model"
        raise LossError(
            f"{_loss(task)}: outputs {shown(outputs)} have {outputs.shape[1]} classes on dimension "
            f"1, the data {classes}: {remedy}"
        )


def class_targets(task: str, outputs: Tensor, targets: Tensor) -> None:
    """Class indices (N, ...) for outputs (N, C, ...), as integers; or soft targets, as floats."""
    if outputs.shape == targets.shape:
        if not targets.is_floating_point():
            raise LossError(
                f"{_loss(task)}: integer targets {shown(targets)} look one-hot: "
                "write targets.argmax(1) for classes, or targets.float() for probabilities"
            )
        return
    head = f"{_loss(task)}: outputs {shown(outputs)} against targets {shown(targets)}: "
    expected = outputs.shape[:1] + outputs.shape[2:]
    if targets.shape == expected:
        if targets.is_floating_point():
            raise LossError(
                f"{_loss(task)}: class targets {shown(targets)} are {targets.dtype}: "
                "write targets.long()"
            )
        return
    if targets.ndim == outputs.ndim and targets.shape[:1] + targets.shape[2:] == expected:
        if targets.shape[1] == 1:
            raise LossError(head + "write targets.squeeze(1)")
        raise LossError(
            head + f"the model knows {outputs.shape[1]} classes, the targets {targets.shape[1]}: "
            f"give the model's last layer {targets.shape[1]} outputs"
        )
    if targets.shape == outputs.shape[:-1]:
        raise LossError(
            head + "the classes must be on dimension 1: write outputs.movedim(-1, 1) in the model"
        )
    raise LossError(head + f"the targets must have the shape {tuple(expected)}")


def class_range(task: str, targets: Tensor, classes: int, ignore_index: int | None) -> None:
    """Every class index is from 0 to C - 1, or the ignored one."""
    wrong = (targets < 0) | (targets >= classes)
    if ignore_index is not None:
        wrong &= targets != ignore_index
    if not bool(wrong.any()):
        return
    value, sample = _first(wrong, targets)
    remedy = "correct the labels, or give the model as many outputs as there are classes"
    if value == classes and int(targets.min()) == 1:
        remedy = "classes count from 0: write targets - 1"
    elif value < 0:
        remedy = f"write ignore_index={value} if such targets are to be ignored"
    raise LossError(
        f"{_loss(task)}: target {value} of sample {sample} is outside the classes 0 to "
        f"{classes - 1} (C = {classes}): {remedy}"
    )


def _first(wrong: Tensor, values: Tensor) -> tuple[Any, int]:
    """The first wrong value and its sample in the batch."""
    where = wrong.nonzero()[0].tolist()
    return values[tuple(where)].item(), where[0]


def finite(task: str, targets: Tensor) -> None:
    """No NaN, no infinity."""
    wrong = ~torch.isfinite(targets)
    if bool(wrong.any()):
        value, sample = _first(wrong, targets)
        raise LossError(
            f"{_loss(task)}: the target of sample {sample} is {value}: "
            "drop the sample or fill the value in before training"
        )


def unit_interval(task: str, targets: Tensor) -> None:
    """Every target is a probability."""
    finite(task, targets)
    wrong = (targets < 0) | (targets > 1)
    if not bool(wrong.any()):
        return
    value, sample = _first(wrong, targets)
    remedy = "write targets of 0 and 1"
    if bool(((targets == -1) | (targets == 1)).all()):
        remedy = "write (targets + 1) / 2"
    elif float(targets.max()) > 1:
        largest = targets.max().item()
        if largest == 255:
            remedy = "write targets / 255"
        elif task == "binary":
            remedy = "write targets of 0 and 1, or the task 'multiclass' for more classes"
    raise LossError(f"{_loss(task)}: target {value} of sample {sample} is outside 0 to 1: {remedy}")


def sums_to_one(task: str, targets: Tensor) -> None:
    """Soft targets are a distribution over the classes of dimension 1."""
    unit_interval(task, targets)
    sums = targets.sum(dim=1)
    wrong = (sums - 1).abs() > 1e-3
    if bool(wrong.any()):
        value, sample = _first(wrong, sums)
        raise LossError(
            f"{_loss(task)}: the soft targets of sample {sample} sum to {value:.4g}, not 1: "
            "write targets / targets.sum(1, keepdim=True), or the task 'multilabel'"
        )


def are_logits(task: str, outputs: Tensor) -> None:
    """The outputs have not been through softmax already.

    Only outputs that are all in [0, 1] and whose every row sums to 1 are refused, and only from two
    rows and eight numbers on: logits do not do that by chance.
    """
    rows = outputs.numel() // outputs.shape[1]
    if rows < 2 or outputs.numel() < 8:
        return
    probabilities = outputs.detach().float()
    inside = (probabilities >= 0) & (probabilities <= 1)
    ones = (probabilities.sum(dim=1) - 1).abs() <= 1e-4
    if bool(inside.all() & ones.all()):
        raise LossError(
            f"{_loss(task)}: every row of the outputs is a probability distribution already, and "
            "the loss applies softmax itself: remove the softmax from the end of the model"
        )


def signs(targets: Tensor) -> None:
    """Ranking targets say which of a pair ranks higher: 1 the first, -1 the second."""
    wrong = targets.abs() != 1
    if not bool(wrong.any()):
        return
    value, sample = _first(wrong, targets)
    zeros_and_ones = bool(((targets == 0) | (targets == 1)).all())
    remedy = "write 2 * targets - 1" if zeros_and_ones else "leave ties out of the data"
    raise LossError(
        f"ranking loss: target {value} of sample {sample} is neither 1 (the first ranks higher) "
        f"nor -1 (the second does): {remedy}"
    )
