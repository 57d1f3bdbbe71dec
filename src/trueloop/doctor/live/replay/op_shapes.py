"""Shapes of the arguments of an operation out of a bundle: those that its forward would have made.

Each check gives the reason for which the operation is not run, or an empty text.
"""

from __future__ import annotations

import math

import torch

from trueloop.doctor.live.replay.op_indices import Check, Named, outside

LONGEST = 2**31
"""Of a kernel, stride or padding: torch computes with such numbers without a look at overflow."""


def same_shape(*names: str) -> Check:
    def check(named: Named) -> str:
        shapes = {tuple(named[name].shape) for name in names if named.get(name) is not None}
        return f"its arguments {' and '.join(names)} differ in shape" if len(shapes) > 1 else ""

    return check


def short(*names: str) -> Check:
    """Numbers of a kernel, a stride, a padding: not so large that a product of them overflows."""

    def check(named: Named) -> str:
        for name in names:
            value = named.get(name)
            numbers = value if isinstance(value, (list, tuple)) else [value]
            if any(isinstance(each, int) and abs(each) >= LONGEST for each in numbers):
                return f"its {name} is too large"
        return ""

    return check


def pooled(dims: int) -> Check:
    """The backward of a max pooling: the place of each maximum, in its own picture."""

    def check(named: Named) -> str:
        inputs, grad, indices = named["self"], named["grad_output"], named["indices"]
        if inputs.dim() not in (dims + 1, dims + 2) or grad.shape != indices.shape:
            return "its gradient and its indices differ in shape"
        if grad.dim() != inputs.dim() or grad.shape[:-dims] != inputs.shape[:-dims]:
            return "its gradient and its input differ in shape"
        return outside(indices, 0, math.prod(inputs.shape[-dims:]))

    return check


def padded(dims: int) -> Check:
    """The backward of a padding: a gradient of the padded shape."""

    def check(named: Named) -> str:
        inputs, grad, padding = named["self"], named["grad_output"], named["padding"]
        if inputs.dim() not in (dims + 1, dims + 2) or len(padding) != 2 * dims:
            return "its padding does not fit its input"
        wanted = list(inputs.shape)
        for place in range(dims):
            wanted[-1 - place] += padding[2 * place] + padding[2 * place + 1]
        return "" if list(grad.shape) == wanted else "its gradient does not have the padded shape"

    return check


def unpooled(dims: int) -> Check:
    def check(named: Named) -> str:
        inputs, indices, size = named["self"], named["indices"], named["output_size"]
        if inputs.shape != indices.shape or len(size) != dims or min(size) <= 0:
            return "its input, its indices and its size do not fit"
        return outside(indices, 0, math.prod(size))

    return check


def leading(dims: int) -> Check:
    """A gradient has the batch and the channels of the input."""

    def check(named: Named) -> str:
        inputs, grad = named["self"], named["grad_output"]
        fits = grad.dim() == inputs.dim() and inputs.dim() in (dims + 1, dims + 2)
        if not fits or grad.shape[:-dims] != inputs.shape[:-dims]:
            return "its gradient and its input differ in shape"
        return ""

    return check


def sampled(named: Named) -> str:
    """grid_sampler: a grid per sample, and a gradient of the shape of its result."""
    inputs, grid, grad = named["input"], named["grid"], named.get("grad_output")
    dims = inputs.dim() - 2
    if dims not in (2, 3) or grid.dim() != inputs.dim() or grid.shape[-1] != dims:
        return "its grid does not fit its input"
    if grid.shape[0] != inputs.shape[0] or min(inputs.shape[2:]) <= 0:
        return "its grid does not fit its input"
    if grad is None:
        return ""
    if grad.shape != (*inputs.shape[:2], *grid.shape[1:-1]):
        return "its gradient does not have its result's shape"
    # At NaN, and far outside, the backward reads outside the input.
    return "" if bool((grid.abs() < 2**20).all()) else "its grid is not finite"


def scaled(named: Named) -> str:
    """upsample: a scale that is not the ratio of the sizes leads outside of the input."""
    inputs = named["input" if "input" in named else "self"] if "input_size" not in named else None
    before = named["input_size"][2:] if inputs is None else inputs.shape[2:]
    sizes = named.get("output_size")
    scales = named.get("scale_factors")
    if scales is None:
        scales = [named.get(key) for key in ("scales_d", "scales_h", "scales_w") if key in named]
        scales = [named["scales"]] if "scales" in named else scales
    if any(given is not None and len(given) != len(before) for given in (sizes, scales)):
        return "its sizes or its scales do not fit its input"
    for index, scale in enumerate(scales or ()):
        if scale is None:
            continue
        if not 1e-6 < scale < 1e6:
            return "its scale is not a ratio of sizes"
        if sizes is not None and abs(int(before[index] * scale) - sizes[index]) > 1:
            return "its scale does not fit its sizes"
    return ""


# ---------------------------------------------------------------------- norms


def numbers(tensor: torch.Tensor | None, count: int) -> bool:
    return tensor is None or tensor.numel() == count


def batch_norm(named: Named) -> str:
    """One number per channel of all that goes with the input."""
    inputs = named["input"]
    if inputs.dim() < 2:
        return "its input has too few dimensions"
    channels = inputs.shape[1]
    training = named.get("train", named.get("update", named.get("training", True)))
    saved = "save_mean save_invstd save_var".split()
    names = ["weight", "bias", "running_mean", "running_var", *(saved if training else ())]
    if not all(numbers(named.get(name), channels) for name in names):
        return "its statistics do not have one number per channel"
    if named.get("grad_out") is None:
        return ""
    if named["grad_out"].shape != inputs.shape:
        return "its gradient and its input differ in shape"
    needed = (
        ("save_mean", "save_invstd", "save_var") if training else ("running_mean", "running_var")
    )
    if any(named[name] is None for name in needed if name in named):
        return "its statistics are missing"
    return ""


def layer_norm(named: Named) -> str:
    inputs, shape = named["input"], list(named["normalized_shape"])
    if not shape or list(inputs.shape[-len(shape) :]) != shape:
        return "its input does not end in the normalized shape"
    rows = math.prod(inputs.shape[: -len(shape)])
    if any(each is not None and list(each.shape) != shape
           for each in (named.get("weight"), named.get("bias"))):  # fmt: skip
        return "its weight does not have the normalized shape"
    if not all(numbers(named.get(name), rows) for name in ("mean", "rstd")):
        return "its statistics do not have one number per row"
    if named.get("grad_out") is not None and named["grad_out"].shape != inputs.shape:
        return "its gradient and its input differ in shape"
    return ""


def group_norm(named: Named) -> str:
    inputs, groups = named["input"], named["group"]
    rows, channels, pixels = named["N"], named["C"], named["HxW"]
    if min(rows, channels, pixels) < 0 or groups <= 0 or channels % groups:
        return "its sizes do not fit"
    if inputs.numel() != rows * channels * pixels or tuple(inputs.shape[:2]) != (rows, channels):
        return "its input does not have the size that is given"
    if not all(numbers(named.get(name), channels) for name in ("weight", "bias")):
        return "its weight does not have one number per channel"
    if not all(numbers(named.get(name), rows * groups) for name in ("mean", "rstd")):
        return "its statistics do not have one number per group"
    if named.get("grad_out") is not None and named["grad_out"].shape != inputs.shape:
        return "its gradient and its input differ in shape"
    return ""


def weight_norm(named: Named) -> str:
    forward = "v" in named
    weight, size = (named[name] for name in (("v", "g") if forward else ("saved_v", "saved_g")))
    dim = named["dim"]
    if weight.dim() == 0 or dim not in (0, weight.dim() - 1):
        return "its dimension is not the first or the last"
    shape = [1] * weight.dim()
    shape[dim] = weight.shape[dim]
    if list(size.shape) != shape or not numbers(named.get("saved_norms"), shape[dim]):
        return "its norms do not have one number per row"
    if not weight.numel() or not size.is_contiguous():
        return "its weight is empty, or its norms share memory"
    if named.get("grad_w") is not None and named["grad_w"].shape != weight.shape:
        return "its gradient and its weight differ in shape"
    return ""


# ---------------------------------------------------------------------- attention and sequences


def attention(named: Named) -> str:
    query, key, value, mask = (named[name] for name in ("query", "key", "value", "attn_mask"))
    if not query.dim() == key.dim() == value.dim() == 4:
        return "its inputs do not have four dimensions"
    rows, heads, length, width = query.shape
    keys = key.shape[2]
    if key.shape != (rows, key.shape[1], keys, width) or value.shape[:3] != key.shape[:3]:
        return "its query, key and value differ in shape"
    if value.shape[3] != width or key.shape[1] != heads or not query.numel() or not key.numel():
        return "its query, key and value differ in shape"
    if not query.dtype == key.dtype == value.dtype:
        return "its query, key and value differ in dtype"
    if mask is not None and (
        mask.dim() not in (2, 4) or mask.dtype not in (query.dtype, torch.float32)
        or any(each not in (1, whole) for each, whole
               in zip(mask.shape[::-1], (keys, length, heads, rows), strict=False))
    ):  # fmt: skip
        return "its mask does not fit its query and key"
    made = [named[name] for name in ("out", "grad_out") if name in named]
    if any(each.shape != query.shape or each.dtype != query.dtype for each in made):
        return "its gradient and its result differ in shape"
    saved = named.get("logsumexp")
    if saved is not None and (
        saved.numel() != rows * heads * length or saved.shape[0] != rows or saved.dim() != 3
    ):
        return "what its forward has saved does not fit"
    return ""


def packed(named: Named) -> str:
    inputs, lengths = named["input"], named["lengths"]
    if inputs.dim() < 2 or lengths.dim() != 1 or not lengths.numel():
        return "its input or its lengths have a wrong number of dimensions"
    steps, rows = inputs.shape[:2]
    if named["batch_first"]:
        steps, rows = rows, steps
    if lengths.numel() != rows:
        return "its lengths are not one per sample"
    return outside(lengths, 1, steps + 1)


def recurrent(named: Named) -> str:
    """mkldnn_rnn_layer: an LSTM's layer in one direction."""
    inputs, hidden, mode = named["input"], named["hidden_size"], named["mode"]
    if mode != 2 or inputs.dim() != 3 or hidden <= 0 or hidden >= LONGEST or not inputs.numel():
        return "it is not a layer of an LSTM"
    if named["batch_sizes"] or not 0 < named["num_layers"] < LONGEST:
        return "it is not a layer of an LSTM"
    first = 1 if "weight4" in named else 0
    weights = [named[f"weight{first + place}"] for place in range(4)]
    gates = 4 * hidden
    shapes: list[tuple[int, ...]] = [(gates, inputs.shape[2]), (gates, hidden), (gates,), (gates,)]
    # It is handed each step of all samples after the other, whatever batch_first says.
    rows = inputs.shape[1]
    states = [named[name] for name in ("hx_", "cx_", "hx", "cx_tmp") if name in named]
    tensors = [*weights, *states]
    if any(each.dtype != inputs.dtype or not each.is_contiguous() for each in tensors):
        return "its weights and states differ in dtype from its input"
    if not named["has_biases"] or [tuple(each.shape) for each in weights] != shapes:
        return "its weights do not fit its input and its hidden size"
    states += [named[name] for name in ("hy_", "cy_", "grad_hy", "grad_cy")
               if named.get(name) is not None]  # fmt: skip
    if any(each.numel() != rows * hidden for each in states):
        return "its states do not fit its input and its hidden size"
    results = [named.get(name) for name in ("output", "grad_output")]
    if any(each is not None and each.shape != (*inputs.shape[:2], hidden) for each in results):
        return "its gradient and its result differ in shape"
    return ""
