"""The operations of torch that a bundle may contain, and the kinds of their arguments.

A list of what is allowed: operations that compute tensors from tensors and numbers. Whatever opens
a file, takes memory by its address, changes a tensor's memory (`set_`, `resize_`), writes into an
`out=` argument, or speaks of sparse, quantized or nested tensors is not on it.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trueloop.errors import ConfigError

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Kwargs

_ELEMENTWISE = frozenset(
    """
    abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp
    clamp_max clamp_min conj_physical copysign cos cosh deg2rad digamma div elu eq erf erfc
    erfinv exp exp2 expm1 fill floor floor_divide fmod frac gcd ge gelu gt hardsigmoid hardswish
    hardtanh heaviside hypot i0 igamma igammac lcm ldexp le leaky_relu lerp lgamma log log10
    log1p log2 logical_and logical_not logical_or logical_xor logit lt masked_fill mish mul
    mvlgamma nan_to_num ne neg nextafter polygamma pow rad2deg reciprocal relu remainder round
    rsqrt sgn sigmoid sign silu sin sinc sinh sqrt sub tan tanh threshold trunc xlogy zero
    """.split()
)
"""One element at a time: these are allowed in place too (`add_`)."""
_ARITHMETIC = frozenset(
    """
    _conj_physical angle complex fmax fmin frexp isinf isnan isneginf isposinf logaddexp
    logaddexp2 maximum minimum polar rsub signbit where hardshrink softplus softshrink
    special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr
    special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
    special_modified_bessel_k1 special_ndtri special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_xlog1py special_zeta

    elu_backward gelu_backward glu_backward hardshrink_backward hardsigmoid_backward
    hardswish_backward hardtanh_backward huber_loss_backward leaky_relu_backward
    log_sigmoid_backward logit_backward mish_backward mse_loss_backward sigmoid_backward
    silu_backward smooth_l1_loss_backward soft_margin_loss_backward softplus_backward
    softshrink_backward tanh_backward threshold_backward binary_cross_entropy_backward
    rrelu_with_noise_backward native_dropout_backward
    """.split()
)
"""Two tensors, or a tensor and a number, one element at a time; not in place."""
_OTHERS = frozenset(
    """
    _prelu_kernel _prelu_kernel_backward glu log_sigmoid_forward rrelu_with_noise
    rrelu_with_noise_

    _is_all_true _is_any_true all allclose amax amin aminmax any argmax argmin count_nonzero
    cummax cummin cumprod cumsum cumprod_ cumsum_ dist equal is_same_size kthvalue
    linalg_vector_norm logcumsumexp logsumexp max mean median min mode nanmedian nansum norm
    prod renorm sort std std_mean sum topk trace var var_mean _local_scalar_dense _log_softmax
    _log_softmax_backward_data _safe_softmax _softmax _softmax_backward_data bincount bucketize
    histc isin searchsorted

    _conj _neg_view _reshape_alias _to_copy _unsafe_view alias alias_copy as_strided
    as_strided_copy as_strided_scatter block_diag cat channel_shuffle clone constant_pad_nd copy
    copy_ detach detach_ diag_embed diagonal diagonal_backward diagonal_copy diagonal_scatter
    expand expand_copy flip lift_fresh narrow_copy permute permute_copy pixel_shuffle
    pixel_unshuffle repeat roll rot90 select select_backward select_copy select_scatter slice
    slice_backward slice_copy slice_scatter split split_copy split_with_sizes
    split_with_sizes_copy squeeze squeeze_ squeeze_copy stack t t_ t_copy transpose transpose_
    transpose_copy tril tril_ triu triu_ unbind unbind_copy unfold unfold_backward unfold_copy
    unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ unsqueeze_copy view
    view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy

    arange bartlett_window blackman_window empty empty_like empty_permuted empty_strided eye
    full full_like hamming_window hann_window kaiser_window linspace logspace new_empty
    new_empty_strided new_full new_ones new_zeros ones ones_like scalar_tensor tril_indices
    triu_indices zeros zeros_like bernoulli bernoulli_ cauchy_ exponential_ geometric_
    log_normal_ multinomial native_dropout normal normal_ rand rand_like randint randint_like
    randn randn_like random_ randperm uniform_

    _index_put_impl_ _unique _unique2 _unsafe_index _unsafe_index_put _unsafe_masked_index
    _unsafe_masked_index_put_accumulate _embedding_bag _embedding_bag_backward
    _embedding_bag_per_sample_weights_backward embedding embedding_dense_backward
    embedding_renorm_ gather index index_add index_add_ index_copy index_copy_ index_fill
    index_fill_ index_put index_put_ index_reduce index_reduce_ index_select masked_scatter
    masked_scatter_ masked_scatter_backward masked_select nonzero put put_ repeat_interleave
    scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ take
    unique_consecutive unique_dim

    _cdist_backward _cdist_forward _linalg_check_errors cholesky cholesky_inverse cholesky_solve
    linalg_eig linalg_householder_product linalg_lu linalg_lu_solve lu_unpack linalg_matrix_exp
    _linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd _pdist_backward
    _pdist_forward _trilinear addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm
    baddbmm_ bmm dot linalg_cholesky_ex linalg_cross linalg_inv_ex linalg_lu_factor_ex linalg_qr
    linalg_solve_triangular mm mv vdot _fft_c2c _fft_c2r _fft_r2c

    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
    _adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool2d_backward
    adaptive_max_pool3d adaptive_max_pool3d_backward avg_pool2d avg_pool2d_backward avg_pool3d
    avg_pool3d_backward col2im convolution convolution_backward im2col max_pool2d_with_indices
    max_pool2d_with_indices_backward max_pool3d_with_indices max_pool3d_with_indices_backward
    max_unpool2d max_unpool3d reflection_pad1d reflection_pad1d_backward reflection_pad2d
    reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward replication_pad1d
    replication_pad1d_backward replication_pad2d replication_pad2d_backward replication_pad3d
    replication_pad3d_backward affine_grid_generator fractional_max_pool2d
    fractional_max_pool2d_backward fractional_max_pool3d fractional_max_pool3d_backward
    grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward
    _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa
    _upsample_bilinear2d_aa_backward _upsample_nearest_exact1d
    _upsample_nearest_exact1d_backward _upsample_nearest_exact2d
    _upsample_nearest_exact2d_backward _upsample_nearest_exact3d
    _upsample_nearest_exact3d_backward upsample_bicubic2d upsample_bicubic2d_backward
    upsample_bilinear2d upsample_bilinear2d_backward upsample_linear1d
    upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward upsample_nearest2d
    upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward
    upsample_trilinear3d upsample_trilinear3d_backward

    _batch_norm_with_update _native_batch_norm_legit _native_batch_norm_legit_no_training
    batch_norm_backward native_batch_norm native_batch_norm_backward native_group_norm
    native_group_norm_backward native_layer_norm native_layer_norm_backward _fused_rms_norm
    _fused_rms_norm_backward _weight_norm_interface _weight_norm_interface_backward
    _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward _pack_padded_sequence mkldnn_rnn_layer
    mkldnn_rnn_layer_backward

    _ctc_loss _ctc_loss_backward binary_cross_entropy binary_cross_entropy_with_logits
    huber_loss mse_loss multi_margin_loss multi_margin_loss_backward
    multilabel_margin_loss_backward multilabel_margin_loss_forward nll_loss2d_backward
    nll_loss2d_forward nll_loss_backward nll_loss_forward
    fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask
    smooth_l1_loss soft_margin_loss
    """.split()
)
INTO = ("aten.div.out",)
"""Tensors of torch's own modules that an operation writes into (spectral_norm)."""
DTYPES = {
    str(each).removeprefix("torch."): each
    for each in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
        torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
    )
}  # fmt: skip
_MEMORY_FORMATS = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
_DEVICES = re.compile(r"(cpu|cuda|mps|xpu|hpu|npu)(:\d{1,3})?")
_STRINGS = re.compile(r"[A-Za-z_.]{1,40}")
"""Names of variants, and what a function of torch.linalg is called in its complaints."""
_INT64 = 2**63


class Ref(NamedTuple):
    """A tensor among the arguments, by its place among the values of the bundle."""

    value: int


class BoundCall(NamedTuple):
    """An operation with arguments that fit its schema."""

    operation: Any
    packet: str
    """`add_` of `aten.add_.Tensor`."""
    given: tuple[tuple[str, Any], ...]
    """Names and values of the arguments that the bundle gives."""

    def refs(self) -> list[int]:
        return [
            each.value
            for _, value in self.given
            for each in (value if isinstance(value, list) else [value])
            if isinstance(each, Ref)
        ]


class BadArgumentError(Exception):
    """An argument that does not fit the operation's schema; the text says which."""


def is_allowed(name: str) -> bool:
    """`aten.add.Tensor` is allowed in a bundle (whether or not this torch has it)."""
    space, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    return (
        space == "aten"
        and (packet in _OTHERS or _takes_numbers(packet))
        and ("out" not in overload.split("_") or name in INTO)
    )  # fmt: skip


def _takes_numbers(packet: str) -> bool:
    """A number is allowed in place of a tensor of the schema: `x + 1` is `add.Tensor(x, 1)`."""
    return packet in _ARITHMETIC or packet in _ELEMENTWISE or (
        packet.endswith("_") and packet[:-1] in _ELEMENTWISE
    )  # fmt: skip


def find(name: str, torch_version: str) -> Any:
    """The operation of this name. Raises `ConfigError` for what is not allowed in a bundle, and
    for what this torch does not have."""
    if not is_allowed(name):
        raise ConfigError(
            f"{shown(name)} is not among the operations that a bundle may contain: it cannot be "
            "replayed; watch the program again"
        )
    _, packet, *overload = name.split(".")
    found = getattr(
        getattr(torch.ops.aten, packet, None), overload[0] if overload else "default", None
    )
    if not _is_functional(found):
        raise ConfigError(
            f"this torch has no {shown(name)}: replay it with torch {shown(torch_version)}"
        )
    return found


@functools.cache
def _is_functional(found: Any) -> bool:
    """It is called by torch's dispatcher, makes its own results (or changes its first argument, as
    `add_`), and takes no argument that a bundle cannot have."""
    schema = getattr(found, "_schema", None)
    return (
        schema is not None
        and torch._C._dispatch_has_kernel(found.name())
        and (str(found) in INTO or not any(each.is_out for each in schema.arguments))
        and all(_inner(str(each.real_type)) in _KINDS for each in schema.arguments)
    )


def _inner(kind: str) -> str:
    """`int` of `Optional[List[int]]`."""
    return kind.rpartition("[")[2].rstrip("]")


def bind(operation: Any, packet: str, args: list[Any], kwargs: Kwargs) -> BoundCall:
    """Fit arguments, as the bundle has them, to the operation's schema.

    Raises `BadArgumentError` for one too many, one too few, and one of a wrong kind.
    """
    expected = operation._schema.arguments
    by_place = [each for each in expected if not each.kwarg_only]
    if len(args) > len(by_place):
        raise BadArgumentError(f"it takes {len(by_place)} arguments, not {len(args)}")
    given = dict(zip((each.name for each in by_place), args, strict=False))
    twice = given.keys() & kwargs.keys()
    unknown = kwargs.keys() - {each.name for each in expected}
    if twice or unknown:
        raise BadArgumentError(f"it does not take {shown(min(twice | unknown))} by name")
    given |= kwargs
    bound = []
    for argument in expected:
        if argument.name not in given:
            if not argument.has_default_value():
                raise BadArgumentError(f"its argument {argument.name} is missing")
        elif argument.name not in ("device", "pin_memory"):
            kind, value = str(argument.real_type), given[argument.name]
            if kind == "Tensor" and _takes_numbers(packet) and not isinstance(value, dict):
                kind = "number"
            value = _typed(kind, value, argument.name)
            if isinstance(value, list):
                _must_have_length(value, argument)
            bound.append((argument.name, value))
        elif argument.name == "device":
            _typed("Optional[Device]", given["device"], "device")
            bound.append(("device", torch.device("cpu")))
    return BoundCall(operation, packet, tuple(bound))


def _must_have_length(value: list[Any], argument: Any) -> None:
    """Of `int[2]`: two, or one for both, or none where that is the default."""
    wanted = argument.N
    may_be_empty = argument.has_default_value() and argument.default_value in ([], None)
    if wanted and len(value) not in (1, wanted) and (value or not may_be_empty):
        raise BadArgumentError(f"its argument {argument.name} does not have {wanted} numbers")


def fits(written: dict[str, Any]) -> bool:
    """An operation, as a bundle has it, is one that `find` and `bind` will take."""
    try:
        operation = find(written["name"], torch.__version__)
        bind(operation, written["name"].split(".")[1], written["args"], written["kwargs"])
    except (ConfigError, BadArgumentError):
        return False
    return True


def _typed(kind: str, given: Any, name: str) -> Any:
    """An argument of the kind that the schema wants: `Optional[List[int]]`."""
    if kind.startswith("Optional["):
        return None if given is None else _typed(kind[9:-1], given, name)
    if kind.startswith("List["):
        if not isinstance(given, list):
            raise BadArgumentError(f"its argument {name} is not a list")
        return [_typed(kind[5:-1], each, name) for each in given]
    read = _READ.get(kind)
    value = None if read is None else read(given)
    if value is None:
        raise BadArgumentError(f"its argument {name} is not a {_CALLED.get(kind, kind)}")
    return value


def _one(given: Any, key: str) -> Any:
    """The content of `{key: …}`."""
    return given[key] if isinstance(given, dict) and list(given) == [key] else None


def _tensor(given: Any) -> Ref | None:
    index = _one(given, "tensor")
    return Ref(index) if type(index) is int and index >= 0 else None


def _int(given: Any) -> int | None:
    return given if type(given) is int and -_INT64 <= given < _INT64 else None


def _number(given: Any) -> float | bool | None:
    text = _one(given, "float")
    if text is not None:
        return float(text) if text in ("nan", "inf", "-inf") else None
    return given if isinstance(given, (bool, float)) else _int(given)


def _float(given: Any) -> float | None:
    value = _number(given)
    return None if value is None or isinstance(given, bool) else float(value)


def _dtype(given: Any) -> torch.dtype | None:
    name = _one(given, "dtype")
    return DTYPES.get(name) if isinstance(name, str) else None


def _memory_format(given: Any) -> torch.memory_format | None:
    name = _one(given, "memory_format")
    found: torch.memory_format | None = getattr(torch, name) if name in _MEMORY_FORMATS else None
    return found


def _device(given: Any) -> torch.device | None:
    """The CPU, where all values of a bundle are."""
    name = _one(given, "device")
    return torch.device("cpu") if isinstance(name, str) and _DEVICES.fullmatch(name) else None


_READ: dict[str, Any] = {
    "Tensor": _tensor,
    "int": _int,
    "SymInt": _int,
    "number": _number,
    "float": _float,
    "bool": lambda given: given if isinstance(given, bool) else None,
    "str": lambda given: (
        given if isinstance(given, str) and _STRINGS.fullmatch(given) else None
    ),
    "ScalarType": _dtype,
    "Layout": lambda given: torch.strided if _one(given, "layout") == "strided" else None,
    "MemoryFormat": _memory_format,
    "Device": _device,
}  # fmt: skip
_KINDS = frozenset(_READ) | {"Generator"}
_CALLED = {
    "Tensor": "tensor",
    "int": "whole number",
    "SymInt": "whole number",
    "float": "number",
    "bool": "truth value",
    "str": "text that it knows",
    "ScalarType": "dtype that a bundle may contain",
    "Layout": "layout that a bundle may contain",
    "MemoryFormat": "memory format",
    "Device": "device",
    "Generator": "null: a bundle has no generators",
}


def shown(text: Any, most: int = 80) -> str:
    """Text out of a file, for a terminal: without control characters, on one line, not too long."""
    whole = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in str(text)[: most + 1]
    )
    return whole if len(whole) <= most else whole[:most] + "…"
