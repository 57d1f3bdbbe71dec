"""Indices among the arguments of an operation out of a bundle: within what they index.

Each check gives the reason for which the operation is not run, or an empty text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Named = dict[str, Any]
"""Arguments of an operation by their names, defaults among them."""
Check = Callable[[Named], str]


def outside(index: Any, low: int, high: int, *, but: int | None = None) -> str:
    """An index of `index` is not in [low, high), and not `but`."""
    if not isinstance(index, torch.Tensor) or not index.numel():
        return ""
    if index.is_floating_point() or index.is_complex():
        return "its indices are not whole numbers"
    index = index.to(torch.int64)
    wrong = (index < low) | (index >= high)
    if but is not None:
        wrong &= index != but
    return f"an index is not between {low} and {high - 1}" if bool(wrong.any()) else ""


def length(tensor: torch.Tensor, dim: int) -> int | None:
    """Of a dimension, which may be counted from the end; None for one that is not there."""
    if not -max(tensor.dim(), 1) <= dim < max(tensor.dim(), 1):
        return None
    return int(tensor.shape[dim]) if tensor.dim() else 1


def broadcast(*tensors: torch.Tensor) -> tuple[int, ...]:
    """The shape that tensors have together. Raises `RuntimeError` where they have none."""
    made = torch.broadcast_shapes(*(each.shape for each in tensors))  # type: ignore[no-untyped-call]
    return tuple(made)


def along(name: str = "index", *, from_end: bool = False) -> Check:
    """Indices along `dim` of `self`."""

    def check(named: Named) -> str:
        count = length(named["self"], named["dim"])
        if count is None:
            return "it has no such dimension"
        return outside(named[name], -count if from_end else 0, count)

    return check


def of_weight(named: Named) -> str:
    return outside(named["indices"], 0, (*named["weight"].shape, 0)[0])


def of_embedding(named: Named) -> str:
    grad, indices = named["grad_output"], named["indices"]
    if grad.dim() == 0 or grad.shape[:-1] != indices.shape:
        return "its gradient and its indices differ in shape"
    return outside(indices, 0, named["num_weights"])


def renormed(named: Named) -> str:
    return outside(named["indices"], 0, (*named["self"].shape, 0)[0])


def flat_index(named: Named) -> str:
    count = named["self"].numel()
    return outside(named["index"], -count, count)


def places(named: Named) -> str:
    """Of `self[indices]`: each index has its own dimension, a mask as many as it has."""
    shape, dim = named["self"].shape, 0
    for index in named["indices"]:
        if index is None:
            dim += 1
        elif index.dtype in (torch.bool, torch.uint8):
            if index.shape != shape[dim : dim + index.dim()]:
                return "a mask and what it masks differ in shape"
            dim += index.dim()
        elif dim >= len(shape):
            return "it has more indices than dimensions"
        else:
            reason = outside(index, -shape[dim], shape[dim])
            if reason:
                return reason
            dim += 1
    return "" if dim <= len(shape) else "it has more indices than dimensions"


def masked_places(named: Named) -> str:
    """Indices outside are what the mask is for, but those that it lets through are used."""
    shape = named["self"].shape
    if named["mask"].dtype != torch.bool or len(named["indices"]) > len(shape):
        return "its mask or its indices do not fit"
    for length, index in zip(shape, named["indices"], strict=False):
        if index is not None:
            try:
                let_through = index.expand(broadcast(index, named["mask"]))
            except RuntimeError:
                return "its mask and its indices differ in shape"
            reason = outside(let_through[named["mask"].expand_as(let_through)], -length, length)
            if reason:
                return reason
    return ""


def sorter(named: Named) -> str:
    sorter = named.get("sorter")
    boundaries = named.get("sorted_sequence")
    if sorter is None or boundaries is None:
        return ""
    return outside(sorter, 0, (1, *boundaries.shape)[-1])


def bags(named: Named) -> str:
    """EmbeddingBag: rows of the weight, in bags that begin one after the other; in its backward,
    the bag of each row."""
    indices, offsets = named["indices"], named["offsets"]
    if indices.dim() != 1 or offsets.dim() != 1 or not offsets.numel() or named.get("sparse"):
        return "its indices or its offsets have a wrong number of dimensions"
    rows = named["num_weights"] if "num_weights" in named else (*named["weight"].shape, 0)[0]
    count, begins = indices.numel(), offsets.tolist()
    if begins != sorted(begins) or begins[0] != 0 or begins[-1] > count:
        return "its offsets do not go through its indices"
    scales = named.get("per_sample_weights")
    if scales is not None and scales.shape != indices.shape:
        return "its indices and their weights differ in shape"
    grad, bag = named.get("grad"), named.get("offset2bag")
    if grad is None or bag is None:
        return outside(indices, 0, rows)
    if grad.dim() != 2 or bag.numel() not in (0, count) or grad.shape[0] > offsets.numel():
        return "its gradient and its bags do not fit"
    if "weight" in named and grad.shape[1] != named["weight"].shape[-1]:
        return "its gradient and its weight differ in shape"
    largest, sizes = named.get("maximum_indices"), named.get("bag_size")
    if sizes is not None and sizes.numel() != grad.shape[0] and (sizes.numel() or named["mode"]):
        return "its sizes are not one per bag"
    if named["mode"] == 2 and (largest is None or largest.shape != grad.shape):
        return "its maxima and its gradient differ in shape"
    return outside(indices, 0, rows) or outside(bag, 0, grad.shape[0]) or outside(largest, -1, rows)


# ---------------------------------------------------------------------- losses


def classes(named: Named) -> str:
    """Targets of nll_loss, and in its backward what must have the target's shape."""
    inputs, target = named["self"], named["target"]
    if inputs.dim() not in (1, 2, 4):
        return "its input has a wrong number of dimensions"
    classes = inputs.shape[0 if inputs.dim() == 1 else 1]
    rest = (*inputs.shape[:1], *inputs.shape[2:]) if inputs.dim() > 1 else ()
    if target.shape != rest and not (inputs.dim() == 1 and target.shape == (1,)):
        return "its input and its target differ in shape"
    weight, total = named.get("weight"), named.get("total_weight")
    if weight is not None and weight.shape != (classes,):
        return "its weight does not have one number per class"
    if total is not None and total.numel() != 1:
        return "its total weight is not one number"
    grad = named.get("grad_output")
    if grad is not None and grad.shape != (target.shape if named["reduction"] == 0 else ()) and (
        grad.numel() != 1 or named["reduction"] == 0
    ):  # fmt: skip
        return "its gradient does not have the loss's shape"
    return outside(target, 0, classes, but=named["ignore_index"])


def margin_classes(low: int) -> Check:
    """Targets of multi_margin_loss, and of multilabel_margin_loss where -1 ends the list."""

    def check(named: Named) -> str:
        inputs, target = named["self"], named["target"]
        if inputs.dim() > 2 or not inputs.numel():
            return "its input has a wrong number of dimensions"
        inputs = inputs.reshape(1) if inputs.dim() == 0 else inputs
        target = target.reshape(1) if target.dim() == 0 else target
        whole = low < 0
        rows = 1 if inputs.dim() == 1 else inputs.shape[0]
        if (target.shape != inputs.shape) if whole else (target.numel() != rows):
            return "its input and its target differ in shape"
        if named.get("weight") is not None and named["weight"].shape != inputs.shape[-1:]:
            return "its weight does not have one number per class"
        if named.get("is_target") is not None and named["is_target"].numel() != inputs.numel():
            return "its marks and its input differ in shape"
        grad = named.get("grad_output")
        per_row = named["reduction"] == 0 and inputs.dim() == 2
        if grad is not None and grad.shape != ((rows,) if per_row else ()):
            return "its gradient does not have the loss's shape"
        return outside(target, low, inputs.shape[-1])

    return check


def ctc(named: Named) -> str:
    """Targets are labels, and the lengths are within what they count."""
    steps, targets, blank = named["log_probs"], named["targets"], named["blank"]
    if steps.dim() != 3 or targets.dim() not in (1, 2):
        return "its inputs have a wrong number of dimensions"
    length, rows, labels = steps.shape
    lengths = [
        each.tolist() if isinstance(each, torch.Tensor) and each.dim() == 1 else each
        for each in (named["input_lengths"], named["target_lengths"])
    ]
    if not all(isinstance(each, list) and len(each) == rows for each in lengths):
        return "its lengths are not one per sample"
    inputs, wanted = lengths
    if not all(0 <= each <= length for each in inputs) or not all(each >= 0 for each in wanted):
        return "a length is outside of what it counts"
    if targets.dim() == 1:
        if sum(wanted) > targets.numel():
            return "its targets are fewer than their lengths say"
    elif targets.shape[0] != rows or any(each > targets.shape[1] for each in wanted):
        return "its targets are fewer than their lengths say"
    if not 0 <= blank < labels:
        return "its blank is not a label"
    alpha = named.get("log_alpha")
    if alpha is None:
        return outside(targets, 0, labels)
    loss, grad = named["neg_log_likelihood"], named["grad"]
    if (
        alpha.dim() != 3 or alpha.shape[0] != rows or alpha.shape[1] < max(inputs, default=0)
        or alpha.shape[2] < 2 * max(wanted, default=0) + 1 or alpha.dtype != steps.dtype
        or loss.shape != (rows,) or grad.shape != (rows,)
    ):  # fmt: skip
        return "what its forward has saved does not fit"
    return outside(targets, 0, labels)
