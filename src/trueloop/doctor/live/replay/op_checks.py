"""The conditions of an operation out of a bundle on its tensors, beyond those that torch checks.

Torch trusts its own autograd: kernels of backward operations take indices, saved statistics and
sizes as the forward has made them, and read or write beyond a tensor's memory when they are others.
In a bundle they may be others. Each check gives the reason for which the operation is not run, or
an empty text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from trueloop.doctor.live.replay import op_indices as indices, op_shapes as shapes
from trueloop.doctor.live.replay.op_indices import Check, Named, broadcast, length
from trueloop.doctor.live.replay.op_shapes import LONGEST

_OF_MEMORY = ("as_strided", "as_strided_copy", "as_strided_scatter", "_reshape_alias", "view")


def trusts_strides(packet: str) -> bool:
    """Its kernels were not written for tensors whose elements share memory."""
    return packet in _CHECKS and packet not in _OF_MEMORY


def problem(packet: str, named: Named) -> str:
    """Why an operation is not run with these arguments; empty where nothing speaks against it."""
    try:
        return next(filter(None, (check(named) for check in _CHECKS.get(packet, ()))), "")
    except (IndexError, OverflowError, RuntimeError, TypeError):
        # A check asks for the least or the largest of a tensor, and for dimensions, as they are
        # where the kinds of the tensors are right.
        return "its tensors are not of the kinds that it takes"


def _finite(*names: str) -> Check:
    """LAPACK and some samplers do not come back from NaN."""

    def check(named: Named) -> str:
        for name in names:
            value = named.get(name)
            if isinstance(value, torch.Tensor) and not bool(value.isfinite().all()):
                return "its input is not finite"
            if isinstance(value, float) and not math.isfinite(value):
                return f"its {name} is not finite"
        return ""

    return check


def _half_spectrum(named: Named) -> str:
    inputs, dims = named["self"], named["dim"]
    last = length(inputs, dims[-1]) if dims else None
    if last is None or last != named["last_dim_size"] // 2 + 1:
        return "its input does not have half the frequencies of its result"
    return _dims(named)


def _dims(named: Named) -> str:
    """Dimensions that are there, each of them once, and not counted from the end."""
    dims = named["dim"]
    if not dims or any(not 0 <= each < named["self"].dim() for each in dims):
        return "it has no such dimension"
    if not 0 <= named["normalization"] <= 2:
        return "it has no such normalization"
    return "" if len(set(dims)) == len(dims) else "a dimension is named twice"


def _within_memory(named: Named) -> str:
    """as_strided and its like: every element is inside the tensor's memory."""
    size, stride = named["size"], named["stride"]
    first = named.get("storage_offset")
    inputs = named["self"]
    first = inputs.storage_offset() if first is None else first
    if len(size) != len(stride) or first < 0 or any(each < 0 for each in (*size, *stride)):
        return "its sizes and strides do not fit"
    if 0 in size:
        return ""
    last = first + sum((each - 1) * step for each, step in zip(size, stride, strict=True))
    whole = inputs.untyped_storage().nbytes() // max(inputs.element_size(), 1)
    return "" if last < whole else "it reaches beyond its tensor's memory"


def _unfolded(named: Named) -> str:
    grad, sizes, dim = named["grad_in"], named["input_sizes"], named["dim"]
    size, step = named["size"], named["step"]
    if not sizes and size <= 1 == grad.numel():  # of a number
        return ""
    if not sizes or not -len(sizes) <= dim < len(sizes) or size < 0 or step <= 0:
        return "its sizes do not fit"
    if size > sizes[dim]:
        return "its sizes do not fit"
    shape = list(sizes)
    shape[dim] = (sizes[dim] - size) // step + 1
    return "" if list(grad.shape) == [*shape, size] else "its gradient does not fit its sizes"


def _not_to_bool(named: Named) -> str:
    """A truth value has one byte of two that it may be."""
    if named.get("dtype") == torch.bool and named["self"].dtype != torch.bool:
        return "the bytes of other numbers are not truth values"
    return ""


def _few(name: str, most: int) -> Check:
    """A number of terms that are summed one by one."""

    def check(named: Named) -> str:
        return f"its {name} is too large" if named[name] > most else ""

    return check


def _not_least(named: Named) -> str:
    """The least number of its dtype has no opposite: Euclid's algorithm divides by 0 there, which
    ends the process."""
    tensors = (each for each in named.values() if isinstance(each, torch.Tensor))
    signed = [each for each in tensors if each.dtype in _SIGNED and each.numel()]
    least = any(int(each.min()) == torch.iinfo(each.dtype).min for each in signed)
    return "it takes no least number of a dtype" if least else ""


_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)


def _rows(named: Named) -> str:
    inputs = named["self"]
    return "" if inputs.dim() == 2 and inputs.numel() else "its input is not rows of numbers"


def _into(named: Named) -> str:
    """An `out=` of the shape and dtype that the result has: it is neither resized nor cast."""
    if "out" not in named:
        return ""
    out, tensors = named["out"], (named["self"], named["other"])
    try:
        fits = tuple(out.shape) == broadcast(*tensors)
    except RuntimeError:
        fits = False
    return (
        "" if fits and all(each.dtype == out.dtype for each in tensors) else "its out= does not fit"
    )


def _pivots(named: Named) -> str:
    """A row to swap with, counted from 1; and factors of the shape that goes with them."""
    plain = "LU" in named
    factors, pivots = (named[key] for key in (("LU", "pivots") if plain else _UNPACKED))
    if factors.dim() < 2 or (tuple(pivots.shape) != (*factors.shape[:-2], min(factors.shape[-2:]))):
        return "its pivots do not fit its factors"
    return indices.outside(pivots, 1, factors.shape[-2] + 1)


_UNPACKED = ("LU_data", "LU_pivots")


def _fractions(dims: int) -> Check:
    """Where the windows of a fractional max pooling begin: of each picture, between 0 and 1."""

    def check(named: Named) -> str:
        inputs, samples = named["self"], named["random_samples"]
        if inputs.dim() not in (dims + 1, dims + 2) or not inputs.numel():
            return "its input has a wrong number of dimensions"
        rows = (1, inputs.shape[0])[inputs.dim() - dims - 1]
        if tuple(samples.shape) != (rows, inputs.shape[-dims - 1], dims):
            return "its samples do not fit its input"
        return "" if bool(((samples >= 0) & (samples < 1)).all()) else "a sample is not in [0, 1)"

    return check


def _channel_scales(named: Named) -> str:
    inputs, axis = named["self"], named["axis"]
    if not 0 <= axis < inputs.dim():
        return "it has no such dimension"
    wanted = (inputs.shape[axis],)
    if tuple(named["scale"].shape) != wanted or tuple(named["zero_point"].shape) != wanted:
        return "its scales are not one per channel"
    return ""


def _counted(named: Named) -> str:
    """bincount: as many bins as the largest number says."""
    inputs = named["self"]
    if inputs.is_floating_point() or inputs.is_complex():
        return "its numbers are not whole"
    largest = int(inputs.max()) if inputs.numel() else 0
    return "" if max(largest, named["minlength"]) < 2**24 else "it has too many bins"


def _repeats(named: Named) -> str:
    repeats = named.get("repeats")
    if not isinstance(repeats, torch.Tensor):
        return ""
    if repeats.is_floating_point() or repeats.is_complex() or repeats.dtype == torch.bool:
        return "its repeats are not whole numbers"
    if repeats.numel() and (int(repeats.min()) < 0 or int(repeats.max()) > 2**31):
        return "its repeats are negative or too large"
    size = named.get("output_size")
    fits = size is None or size == int(repeats.sum(dtype=torch.int64))
    return "" if fits else "its size is not the sum of its repeats"


def _pairwise(named: Named) -> str:
    """The backward of cdist and pdist: distances as the forward has made them."""
    grad, made = named["grad"], named["cdist" if "cdist" in named else "pdist"]
    first, second = named["x1" if "x1" in named else "self"], named.get("x2")
    if first.dim() < 2 or (second is None and first.dim() != 2) or not named["p"] >= 0:
        return "its inputs have a wrong number of dimensions"
    if second is None:
        rows = first.shape[0]
        wanted: tuple[int, ...] = (rows * (rows - 1) // 2,)
    elif second.dim() != first.dim() or second.shape[-1] != first.shape[-1] or (
        second.shape[:-2] != first.shape[:-2]
    ):  # fmt: skip
        return "its inputs differ in shape"
    else:
        wanted = (*first.shape[:-1], second.shape[-2])
    if tuple(grad.shape) != wanted or tuple(made.shape) != wanted:
        return "its gradient does not have its result's shape"
    return "" if first.numel() and grad.numel() else "its input is empty"


def _convolution(named: Named) -> str:
    """Numbers that go with its dimensions, and in its backward a gradient of its result's shape."""
    inputs, weight = named["input"], named["weight"]
    numbers = _windows(named)
    if any(abs(each) >= LONGEST for given in numbers for each in given):
        return "its stride, padding or dilation is too large"
    dims = inputs.dim() - 2
    if dims < 1 or weight.dim() != inputs.dim() or named["groups"] < 1:
        return "its input and its weight have a wrong number of dimensions"
    if any(len(given) not in (1, dims) for given in numbers[:3]) or (
        len(named["output_padding"]) not in (0, 1, dims)
    ):
        return "its stride, padding or dilation does not fit its input"
    if min(named["stride"]) <= 0:
        return "its stride is not positive"
    groups, transposed = named["groups"], named["transposed"]
    if inputs.shape[1] != (weight.shape[0] if transposed else weight.shape[1] * groups):
        return "its input and its weight differ in channels"
    grad = named.get("grad_output")
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    if grad is not None and list(grad.shape) != [inputs.shape[0], channels, *_convolved(named)]:
        return "its gradient does not have its result's shape"
    return ""


def _windows(named: Named) -> tuple[Sequence[int], ...]:
    return named["stride"], named["padding"], named["dilation"], named["output_padding"]


def _convolved(named: Named) -> list[int]:
    """The size of a convolution's result, without batch and channels."""
    sizes = []
    spatial = zip(named["input"].shape[2:], named["weight"].shape[2:], strict=True)
    for place, (before, kernel) in enumerate(spatial):
        stride, padding, dilation, more = (
            (*given, 0)[place if len(given) > 1 else 0] for given in _windows(named)
        )
        reach = dilation * (kernel - 1) + 1
        if named["transposed"]:
            sizes.append((before - 1) * stride - 2 * padding + reach + more)
        else:
            sizes.append(max((before + 2 * padding - reach) // stride + 1, 0))
    return sizes


def scratch(packet: str, named: Named) -> int:
    """Bytes that an operation needs beside what it makes: a convolution of float64 lays out the
    windows of all of a batch side by side."""
    if packet not in ("convolution", "convolution_backward"):
        return 0
    inputs, weight = named["input"], named["weight"]
    if inputs.dtype in (torch.float16, torch.bfloat16, torch.float32):
        return 0
    steps = inputs.shape[2:] if named["transposed"] else _convolved(named)
    return int(
        inputs.shape[0] * math.prod(steps) * math.prod(weight.shape[1:]) * inputs.element_size()
    )


_INDEX = (indices.along(),)
_WINDOW = shapes.short("kernel_size", "stride", "padding", "dilation", "output_size")
_CHECKS: dict[str, tuple[Check, ...]] = {
    **dict.fromkeys(
        "gather index_add index_add_ index_copy index_copy_ index_reduce index_reduce_ index_select"
        " scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_".split(),
        _INDEX,
    ),
    **dict.fromkeys(("index_fill", "index_fill_"), (indices.along(from_end=True),)),
    **dict.fromkeys(
        "index index_put index_put_ _unsafe_index _unsafe_index_put _index_put_impl_".split(),
        (indices.places,),
    ),
    **dict.fromkeys(
        ("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"), (indices.masked_places,)
    ),
    **dict.fromkeys(("take", "put", "put_"), (indices.flat_index,)),
    "embedding": (indices.of_weight,),
    "embedding_dense_backward": (indices.of_embedding,),
    "embedding_renorm_": (indices.renormed,),
    "searchsorted": (indices.sorter,),
    **dict.fromkeys(
        "nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward".split(),
        (indices.classes,),
    ),
    "multi_margin_loss": (indices.margin_classes(0),),
    "multi_margin_loss_backward": (indices.margin_classes(0),),
    "multilabel_margin_loss_forward": (indices.margin_classes(-1),),
    "multilabel_margin_loss_backward": (indices.margin_classes(-1),),
    "_ctc_loss": (indices.ctc,),
    "_ctc_loss_backward": (indices.ctc,),
    "_softmax_backward_data": (shapes.same_shape("grad_output", "output"),),
    "_log_softmax_backward_data": (shapes.same_shape("grad_output", "output"),),
    "rrelu_with_noise": (shapes.same_shape("self", "noise"),),
    "rrelu_with_noise_": (shapes.same_shape("self", "noise"),),
    "max_pool2d_with_indices_backward": (shapes.pooled(2),),
    "max_pool3d_with_indices_backward": (shapes.pooled(3),),
    "adaptive_max_pool2d_backward": (shapes.pooled(2),),
    "adaptive_max_pool3d_backward": (shapes.pooled(3),),
    "max_unpool2d": (shapes.unpooled(2),),
    "max_unpool3d": (shapes.unpooled(3),),
    "_adaptive_avg_pool2d_backward": (shapes.leading(2),),
    "_adaptive_avg_pool3d_backward": (shapes.leading(3),),
    **dict.fromkeys(
        "grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward".split(),
        (shapes.sampled,),
    ),
    **{
        f"{name}{backward}": (shapes.scaled,)
        for name in (
            "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d"
            " _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d"
            " upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d"
            " upsample_nearest3d upsample_trilinear3d"
        ).split()
        for backward in ("", "_backward")
    },
    **dict.fromkeys(
        "_batch_norm_with_update _native_batch_norm_legit _native_batch_norm_legit_no_training"
        " batch_norm_backward native_batch_norm native_batch_norm_backward".split(),
        (shapes.batch_norm,),
    ),
    "native_layer_norm": (shapes.layer_norm,),
    "native_layer_norm_backward": (shapes.layer_norm,),
    "native_group_norm": (shapes.group_norm,),
    "native_group_norm_backward": (shapes.group_norm,),
    "_weight_norm_interface": (shapes.weight_norm,),
    "_weight_norm_interface_backward": (shapes.weight_norm,),
    "_scaled_dot_product_flash_attention_for_cpu": (shapes.attention,),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (shapes.attention,),
    "_pack_padded_sequence": (shapes.packed,),
    "mkldnn_rnn_layer": (shapes.recurrent,),
    "mkldnn_rnn_layer_backward": (shapes.recurrent,),
    **dict.fromkeys(
        "_linalg_eigh _linalg_svd linalg_eig linalg_matrix_exp linalg_qr multinomial".split(),
        (_finite("self", "A"),),
    ),
    "div": (_into,),
    **dict.fromkeys(("gcd", "gcd_", "lcm", "lcm_"), (_not_least,)),
    "_pdist_forward": (_rows,),
    "mvlgamma": (_few("p", 1000),),
    "mvlgamma_": (_few("p", 1000),),
    "polygamma": (_few("n", 1000),),
    "polygamma_": (_few("n", 1000),),
    "view": (_not_to_bool,),
    "linalg_lu_solve": (_pivots,),
    "lu_unpack": (_pivots,),
    "fractional_max_pool2d": (_fractions(2),),
    "fractional_max_pool3d": (_fractions(3),),
    "fractional_max_pool2d_backward": (shapes.pooled(2),),
    "fractional_max_pool3d_backward": (shapes.pooled(3),),
    "fake_quantize_per_channel_affine_cachemask": (_channel_scales,),
    "_embedding_bag": (indices.bags,),
    "_embedding_bag_backward": (indices.bags,),
    "_embedding_bag_per_sample_weights_backward": (indices.bags,),
    "_fft_c2r": (_half_spectrum,),
    "_fft_c2c": (_dims,),
    "_fft_r2c": (_dims,),
    "as_strided": (_within_memory,),
    "as_strided_copy": (_within_memory,),
    "as_strided_scatter": (_within_memory,),
    "_reshape_alias": (_within_memory,),
    "unfold_backward": (_unfolded,),
    "bincount": (_counted,),
    "repeat_interleave": (_repeats,),
    "_cdist_backward": (_pairwise,),
    "_pdist_backward": (_pairwise,),
    "convolution": (_convolution,),
    "convolution_backward": (_convolution,),
    **dict.fromkeys(
        "avg_pool2d avg_pool3d col2im im2col max_pool2d_with_indices"
        " max_pool3d_with_indices".split(),
        (_WINDOW,),
    ),
    "avg_pool2d_backward": (_WINDOW, shapes.leading(2)),
    "avg_pool3d_backward": (_WINDOW, shapes.leading(3)),
    **dict.fromkeys(
        "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d"
        " replication_pad3d constant_pad_nd".split(),
        (shapes.short("padding", "pad"),),
    ),
    **{
        f"{kind}_pad{dims}d_backward": (shapes.short("padding"), shapes.padded(dims))
        for kind in ("reflection", "replication")
        for dims in (1, 2, 3)
    },
}
